// Scores of items for a user: first the user's weights, then a product with each item. See `o2pl.kernels.offers`.
//
// Sums keep their order, in double precision: a decision is the same bits alone and in a batch.
#pragma once
#include <cstdint>
#include <vector>

namespace o2 {

// A member, [row of numbers]: clip; shift and scale of (user, item), [d] each; weights of the head (the constant and the
// list slots 1, 2, …; later slots share the last) and of (user, item); and of their products, [d_user, d_item].
struct OfferMembers {
  const double* numbers;
  int64_t members, size, d_user, d_item;

  int64_t head() const { return size - 1 - 3 * (d_user + d_item) - d_user * d_item; }  // below 1: another width
};

struct OneOffer {
  int64_t slot;
  const float *user, *items;  // [d_user], [K, d_item]
  int64_t K;
};

// out [M, K], members `stride` apart. room [d_item]
void scores_of_offer(const OfferMembers& members, const OneOffer& offer, double* out, int64_t stride, std::vector<double>& room);

}  // namespace o2
