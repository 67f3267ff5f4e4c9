#include "core/offers.hpp"

#include <algorithm>

namespace o2 {

void scores_of_offer(const OfferMembers& members, const OneOffer& offer, double* out, int64_t stride, std::vector<double>& room) {
  const int64_t a = members.d_user, b = members.d_item, d = a + b, head = members.head();
  room.resize(b);
  double* weights = room.data();
  for (int64_t m = 0; m < members.members; m++) {
    const double *numbers = members.numbers + m * members.size, *shift = numbers + 1, *scale = shift + d, *own = scale + d;
    const double *of_user = own + head, *of_item = of_user + a, *cross = of_item + b, clip = numbers[0];
    const auto scaled = [&](float x, int64_t i) { return std::min(std::max((static_cast<double>(x) - shift[i]) * scale[i], -clip), clip); };
    double level = own[0];
    if (offer.slot > 0 && head > 1) level += own[std::min(offer.slot, head - 1)];
    std::copy(of_item, of_item + b, weights);
    for (int64_t i = 0; i < a; i++) {
      const double u = scaled(offer.user[i], i);
      level += of_user[i] * u;
      for (int64_t j = 0; j < b; j++) weights[j] += u * cross[i * b + j];
    }
    for (int64_t k = 0; k < offer.K; k++) {
      double total = level;
      for (int64_t j = 0; j < b; j++) total += weights[j] * scaled(offer.items[k * b + j], a + j);
      out[m * stride + k] = total;
    }
  }
}

}  // namespace o2
