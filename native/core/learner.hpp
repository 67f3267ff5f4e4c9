// Members with the outcome objective that learn from one log and act as one mixture: when they learn, how they are
// weighted, and how a change is detected. `o2pl.engine.engine` says the same of any members, composed of Python parts.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/lbfgs.hpp"
#include "core/outcome.hpp"
#include "core/penalty.hpp"
#include "core/predictions.hpp"
#include "core/uncertainty.hpp"

namespace o2 {

// What learning needs of the rows of a log, beside their contexts. The arrays belong to somebody else.
struct LearnedColumns {
  const int64_t* actions;  // by index, or
  const double* numbers;   // real-valued ones
  const double *rewards, *propensities;
  int64_t n;
};

struct MemberSettings {
  bool competing;
  double l2, level_l2;
  int features;   // index of the state of its features; members with the same one share it
  int64_t joins;  // number of rows
  double prior;
  int64_t iterations, memory;
  double tolerance;
  bool forgets;  // false: it learns from all rows since its base, with weight one each
};

// A member and what it has learned.
struct LearnedMember {
  MemberSettings settings;
  std::vector<double> params;           // weights, then τ
  std::vector<float> steps, changes;    // pairs of L-BFGS, [memory, stride]: of the params, then zeros
  int64_t stride = 0;
  std::vector<double> inner;            // [memory]
  int64_t at = 0, count = 0;            // position of the next pair, number of pairs
  int64_t checkpoint = 1, base = 0, known = 0, solves = 0, evaluations = 0;

  Pairs pairs();
  void forget(int64_t n_params);  // starts at 0, without pairs
  void widen(int64_t n_params);   // weights of new features come before τ
};

struct WatchSettings {
  int monitor = -1;  // index of the member with a short memory; -1: nothing is watched
  double memory = 0, block = 0, threshold = 0;
  int64_t kept = 0, apart = 0;
};

struct FoundChange {
  int64_t row, base;
  double evidence;
};

// Weights in [0, 1] that sum to 1, ∝ exp(rate · gain).
void exponential_weights(std::span<const double> gains, double rate, std::span<double> weights);

// What the pessimistic objective of some rows is made of.
struct Pessimism {
  double alpha;
  Phi penalty;
};

// When members learn, from which rows, and how actions are explored: asked at checkpoints only. Rows are counted from the
// member's base.
class Choices {
 public:
  virtual ~Choices() = default;
  virtual int64_t after(int member, int64_t rows, bool faint) = 0;
  virtual int64_t start(int member, int64_t rows) = 0;
  virtual const double* weights(int member, int64_t rows) = 0;  // of rows from `start` on; null: one each
  virtual Pessimism pessimism(int64_t rows) = 0;  // asked by members with that objective
  // `acting_numbers` of `o2pl.policies.sampling`
  virtual std::vector<double> acting(std::span<const double> weights, std::span<const int64_t> plays, double mean_reward,
                                     std::span<const double> rewards) = 0;
};

class Learner {
 public:
  // inputs: of the curvature; 0 for hashed features
  Learner(int K, double low, double high, std::vector<MemberSettings> members, const WatchSettings& watch, Choices& choices, int64_t inputs);
  virtual ~Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  // Learns what is due at the rows of the log. False: nothing was done, since that takes more than a few steps.
  // Between two solves, new rows only tell how certain its predictions are.
  bool learn(const LearnedColumns& log, int threads);
  int64_t solve_at() const;  // number of rows at which members learn next

  // What was learned. Whoever changes it calls `resume`.
  std::vector<LearnedMember> members;
  std::vector<double> gains;  // of the joined members
  int64_t learned = 0;
  std::vector<Watched> watched;
  std::vector<FoundChange> found;
  int64_t mean_base = 0, mean_rows = 0;  // rows of the mean reward
  double mean_total = 0;                 // Σ of their rewards
  int64_t checkpoint = 1;
  double dispersion = 1;  // of rewards: members are weighted with the rate over it
  Curvature curvature;  // of its predictions, for a few actions: `uncertainty`
  void resume(const LearnedColumns& log);  // renews how it acts

  // Members' scores of the next row, [present, K], as they were when its action was drawn: it need not be scored again.
  // Of the rows since the last learning, in order; row: its number in the log. K: number of actions to choose from
  void predicted(int64_t row, const double* scores, int64_t K, int64_t action);

  int64_t base() const { return found.empty() ? 0 : found.back().base; }
  const std::vector<double>& acting() const { return acting_; }
  const std::shared_ptr<const Uncertainty>& uncertainty() const { return uncertainty_; }  // null: not known
  int present() const { return static_cast<int>(gains.size()); }
  int n_actions() const { return K_; }

 protected:
  int K_, threads_ = 1;
  WatchSettings watch_;
  Choices& choices_;
  LearnedColumns log_{};
  const double* fractions_ = nullptr;  // rewards as fractions of their range

  virtual void observe(int features, int64_t n) = 0;
  virtual void solve(LearnedMember& member, int64_t start, const double* weights) = 0;
  virtual void solved() = 0;                                      // all that were due have learned
  virtual int64_t n_params(int features) const = 0;               // of a member, τ included
  // Members' scores of rows `from` on, [n, present, K]; of sets (K = 0) one each, of the played action.
  virtual void score(int64_t from, int64_t n, double* scores) = 0;
  virtual void renew(const std::vector<bool>& changed) = 0;       // what acts; changed: members that have learned
  // The rows of a fixed number of actions to `curvature`: start with rows [first, first + n), add the next n, and what it says.
  virtual bool knows_rows() const { return 2 <= K_ && K_ <= Curvature::MOST_ACTIONS; }
  virtual bool looks_between_solves() const { return false; }
  virtual void begin_curvature(int64_t first, int64_t n) { curvature.begin(first, n); }
  virtual void add_curvature(int64_t, int64_t, const double*) {}
  virtual std::shared_ptr<const Uncertainty> make_uncertainty() const { return nullptr; }

  // The log-odds of b, and Σ weights, of rows from start on.
  struct Level {
    double size, level;
  };
  Level level_of(int64_t start, const double* weights);
  using Descending = std::function<Descent(std::vector<double>& params, const Pairs& pairs, const Stop& stop)>;
  void descend_member(LearnedMember& member, const Descending& descending, double size, double level) const;

 private:
  double low_, high_;
  std::vector<double> converted_, acting_;
  int64_t read_ = 0;  // rewards that are fractions as they are
  WeightedSums summed_;  // of rewards, from the base up to the last level
  int64_t summed_from_ = -1, summed_to_ = 0;
  std::vector<double> weights_;
  Predictions predicted_;  // of the first rows since `learned`, by the present members
  std::vector<int64_t> plays_, forgotten_plays_;
  std::vector<double> paid_, forgotten_paid_;  // Σ rewards of each action
  int64_t counted_ = 0, forgotten_ = 0;        // rows

  static constexpr int64_t NEVER = std::numeric_limits<int64_t>::max();
  bool predicts() const { return !acting_.empty() && acting_[0] == 0; }  // see `Acting`
  void read(const LearnedColumns& log);
  void all_predictions(int64_t from, int64_t n, double* z);  // log-odds of played actions, [present, n]
  std::vector<Predictions::Member> predicting() const;
  bool weigh();
  bool watch(const double* z, int64_t stride, int64_t n, const double* rewards, int64_t rows);
  void start_again();
  void count_plays();
  std::shared_ptr<const Uncertainty> uncertainty_;
  std::vector<double> z_, h_;

  // How certain predictions are, with the rows up to n. Returns the number of rows at which to look again. solved: the
  // members have just learned
  int64_t look_at_rows(int64_t n, bool solved);
  void look_before_solve(int64_t n);
  void look_at_new_rows(int64_t n, const double* weights, int64_t first);
  void act(const std::vector<bool>& changed);
  void weigh_members();
};

}  // namespace o2
