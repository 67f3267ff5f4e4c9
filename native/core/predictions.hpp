// What members predicted of rows when their actions were drawn: log-odds of the played actions, which weigh the members later.
#pragma once
#include <cstdint>
#include <vector>

#include "core/outcome.hpp"

namespace o2 {

class Predictions {
 public:
  struct Member {
    bool competing;
    double tau;
  };

  // Forgets all rows. Members, as they predict from now on
  void begin(std::vector<Member> members);

  // Of the next row. scores [M, K]
  void add(const double* scores, int64_t K, int64_t action);

  int64_t rows() const { return static_cast<int64_t>(members_.empty() ? 0 : known_.size() / members_.size()) + waiting_; }

  // z [M, stride] of n rows from `first` on.
  void read(int64_t first, int64_t n, double* z, int64_t stride);

 private:
  std::vector<Member> members_;
  std::vector<double> known_;  // [rows, M]
  // Rows that wait for others, since many at once take less time. All have K actions.
  int64_t waiting_ = 0, K_ = 0;
  std::vector<double> scores_;  // of all actions, or of the played one if they do not compete: [columns, ROWS_IN_LANES]
  int64_t actions_[ROWS_IN_LANES] = {};

  int64_t columns() const;
  void settle();  // those that wait
};

}  // namespace o2
