#include "core/offers.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <vector>

#include "core/acting.hpp"
#include "python/acting_numbers.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

o2::OfferMembers members_of(Array<const double, 2> numbers, int64_t d_user, int64_t d_item) {
  const o2::OfferMembers members{numbers.data, numbers.shape[0], numbers.shape[1], d_user, d_item};
  if (members.head() < 1) throw std::invalid_argument("offers: members of another number of features");
  return members;
}

NewArray<double, 2> scores_of_offers(Array<const int64_t> slots, Array<const float, 2> users, Array<const float, 2> items,
                                     Array<const int64_t> offsets, Array<const double, 2> numbers) {
  const int64_t n = slots.size(), a = users.shape[1], b = items.shape[1], total = items.shape[0];
  const auto members = members_of(numbers, a, b);
  bool fits = users.shape[0] == n && offsets.size() == n + 1 && offsets[0] >= 0 && offsets[n] <= total;
  for (int64_t s = 0; fits && s < n; s++) fits = offsets[s] <= offsets[s + 1];
  if (!fits) throw std::invalid_argument("offers: offsets beyond the items, or another number of users");
  NewArray<double, 2> out({members.members, total});
  nb::gil_scoped_release free;
  std::vector<double> room;
  for (int64_t s = 0; s < n; s++) {
    const o2::OneOffer offer{slots[s], users.data + s * a, items.data + offsets[s] * b, offsets[s + 1] - offsets[s]};
    o2::scores_of_offer(members, offer, out.view.data + offsets[s], total, room);
  }
  return out;
}

std::tuple<int64_t, double> decide_item(int64_t slot, Array<const float, 2> user, Array<const float, 2> items,
                                        Array<const double, 2> numbers, Array<const double> acting, double uniform) {
  const int64_t K = items.shape[0];
  const auto members = members_of(numbers, user.shape[1], items.shape[1]);
  if (user.shape[0] != 1 || K == 0) throw std::invalid_argument("offers: expected one user, and items");
  std::vector<double> scores(members.members * K), pi(K), room;
  o2::scores_of_offer(members, {slot, user.data, items.data, K}, scores.data(), K, room);
  o2::acting_row(scores.data(), members.members, K, K, o2::acting_of(acting, members.members, K), pi.data());
  const int64_t action = o2::draw_one(pi.data(), K, uniform);
  return {action, pi[action]};
}

}  // namespace

void bind_offers(nb::module_& m) {
  m.def("scores_of_offers", &scores_of_offers, nb::arg("slots"), nb::arg("users"), nb::arg("items"), nb::arg("offsets"),
        nb::arg("numbers"),
        "Return the scores of offers, [M, total]. users [n, d_user], items [total, d_item], numbers: of `PackedOffers`");
  m.def("decide_item", &decide_item, nb::arg("slot"), nb::arg("user"), nb::arg("items"), nb::arg("numbers"),
        nb::arg("acting"), nb::arg("uniform"),
        "Return an item for this user and list slot, and its probability. user [1, d_user], items [K, d_item]");
}
