#include "core/predictions.hpp"

#include <algorithm>
#include <utility>

namespace o2 {

void Predictions::begin(std::vector<Member> members) {
  members_ = std::move(members), known_.clear(), waiting_ = 0;
}

void Predictions::add(const double* scores, int64_t K, int64_t action) {
  if (waiting_ == ROWS_IN_LANES || (waiting_ && K != K_)) settle();
  K_ = K;
  scores_.resize(columns() * ROWS_IN_LANES);
  double* to = scores_.data() + waiting_;
  for (const auto& [competing, _] : members_) {
    const int64_t some = competing ? K : 1;
    const double* from = competing ? scores : scores + action;
    for (int64_t k = 0; k < some; k++, to += ROWS_IN_LANES) *to = from[k];
    scores += K;
  }
  actions_[waiting_++] = action;
}

int64_t Predictions::columns() const {
  int64_t found = 0;
  for (const auto& [competing, _] : members_) found += competing ? K_ : 1;
  return found;
}

void Predictions::settle() {
  if (!waiting_) return;
  const auto M = static_cast<int64_t>(members_.size());
  const size_t before = known_.size();
  known_.resize(before + waiting_ * M);
  for (int64_t l = waiting_; l < ROWS_IN_LANES; l++) actions_[l] = 0;
  const double* own = scores_.data();
  double z[ROWS_IN_LANES];
  for (int64_t i = 0; i < M; i++) {
    const auto& [competing, tau] = members_[i];
    if (competing && K_ > 1) played_log_odds(own, K_, actions_, tau, z);
    else for (int64_t l = 0; l < waiting_; l++) z[l] = own[l] + (competing ? -tau : tau);
    for (int64_t l = 0; l < waiting_; l++) known_[before + l * M + i] = z[l];
    own += (competing ? K_ : 1) * ROWS_IN_LANES;
  }
  waiting_ = 0;
}

void Predictions::read(int64_t first, int64_t n, double* z, int64_t stride) {
  settle();
  const auto M = static_cast<int64_t>(members_.size());
  for (int64_t i = 0; i < M; i++)
    for (int64_t r = 0; r < n; r++) z[i * stride + r] = known_[(first + r) * M + i];
}

}  // namespace o2
