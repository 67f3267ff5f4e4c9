#include "core/learner.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/acting.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

constexpr int64_t ROWS_AT_ONCE = 1 << 14;
constexpr double FAINT = 1e-4;        // members with a smaller weight hardly act
constexpr double NEGLIGIBLE = 0.03;   // difference in the total log-likelihood that does not distinguish policies
constexpr double PRIOR_ROWS = 3, ENDS = 0.01;  // of b, which is kept so far from 0 and 1

}  // namespace

void LearnedMember::forget(int64_t n_params) {
  params.assign(n_params, 0.0);
  stride = n_params;
  steps.assign(settings.memory * stride, 0.0f), changes = steps;
  inner.assign(settings.memory, 0.0);
  at = count = 0;
}

Pairs LearnedMember::pairs() {
  return {settings.memory, static_cast<int64_t>(params.size()), stride, steps.data(), changes.data(), inner.data(), &at, &count};
}

void LearnedMember::widen(int64_t n_params) {
  const auto known = static_cast<int64_t>(params.size());
  if (n_params <= known) return;
  params.insert(params.end() - 1, n_params - known, 0.0);
  const int64_t before = stride;
  if (n_params > stride) stride = std::max(n_params, 2 * stride);
  for (auto* pairs : {&steps, &changes}) {
    std::vector<float> wider;
    if (stride > before) {
      wider.resize(settings.memory * stride);
      for (int64_t k = 0; k < settings.memory; k++)
        std::copy_n(pairs->data() + k * before, known, wider.data() + k * stride);
      pairs->swap(wider);
    }
    for (int64_t k = 0; k < settings.memory; k++) {
      float* own = pairs->data() + k * stride;
      std::swap(own[known - 1], own[n_params - 1]);  // of τ; the other is 0
    }
  }
}

Learner::Learner(int K, double low, double high, std::vector<MemberSettings> settings, const WatchSettings& watch, Choices& choices,
                 int64_t inputs)
    : curvature(K, inputs), K_(K), watch_(watch), choices_(choices), low_(low), high_(high), plays_(K), forgotten_plays_(K), paid_(K), forgotten_paid_(K) {
  for (const auto& each : settings) members.emplace_back().settings = each;
}

void Learner::read(const LearnedColumns& log) {
  log_ = log;
  if (low_ == 0 && high_ == 1 && converted_.empty()) {
    while (read_ < log.n && log.rewards[read_] >= 0 && log.rewards[read_] <= 1) read_++;
    if (read_ >= log.n) {
      fractions_ = log.rewards;
      return;
    }
  }
  const auto known = static_cast<int64_t>(converted_.size());
  converted_.resize(std::max(known, log.n));
  for (int64_t r = known; r < log.n; r++) {
    const double loss = low_ - std::min(std::max(log.rewards[r], low_), high_);
    converted_[r] = -(high_ - low_ == 1 ? loss : loss / (high_ - low_));
  }
  fractions_ = converted_.data();
}

bool Learner::learn(const LearnedColumns& log, int threads) {
  const int64_t n = log.n;
  if (watch_.monitor >= 0 && static_cast<double>(n - learned) > watch_.memory) return false;  // the monitor is solved anew then
  read(log);
  threads_ = threads;
  if (n < solve_at()) {
    checkpoint = std::min(solve_at(), look_at_rows(n, false));
    return true;
  }
  const bool restarted = weigh();
  if (restarted) start_again();
  std::vector<bool> due(members.size(), false);
  for (int i = 0; i < static_cast<int>(members.size()); i++)
    due[i] = members[i].settings.joins <= n - base() && (restarted || members[i].checkpoint <= n);
  std::vector<bool> observed(members.size(), false);
  std::vector<std::pair<int64_t, int>> order;  // by their first row
  for (int i = 0; i < static_cast<int>(members.size()); i++) {
    if (!due[i]) continue;
    const int features = members[i].settings.features;
    if (!observed[features]) observe(features, n);
    observed[features] = true;
    const int64_t start = members[i].settings.forgets ? choices_.start(i, n - members[i].base) : 0;
    order.emplace_back(members[i].base + start, i);
  }
  if (!restarted) look_before_solve(n);
  const double best = *std::max_element(gains.begin(), gains.end());
  const int known = present();
  for (int i = known; i < static_cast<int>(members.size()) && members[i].settings.joins <= n - base(); i++)
    gains.push_back(best + members[i].settings.prior);  // a new one learns from the whole log: it starts beside the best
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [start, i] : order) {
    members[i].widen(n_params(members[i].settings.features));
    solve(members[i], start, members[i].settings.forgets ? choices_.weights(i, n - members[i].base) : nullptr);
  }
  solved();
  learned = n;
  weigh_members();
  for (int i = 0; i < static_cast<int>(members.size()); i++) {
    if (!due[i]) continue;
    members[i].known = n;
    members[i].checkpoint = members[i].base + choices_.after(i, n - members[i].base, weights_[i] < FAINT);
  }
  act(due);
  checkpoint = std::min(solve_at(), look_at_rows(n, true));
  return true;
}

int64_t Learner::look_at_rows(int64_t n, bool solved) {
  if (!predicts() || !knows_rows()) {
    uncertainty_.reset();
    return NEVER;
  }
  // A member whose rows fade weighs them anew: all are looked at, at every solve.
  const bool forgets = members[0].settings.forgets, often = looks_between_solves() && !forgets;
  const int64_t since = members[0].base, first = since + (forgets ? choices_.start(0, n - since) : 0);
  const double* weights = forgets && solved ? choices_.weights(0, n - since) : nullptr;  // of rows from `first` on
  if (solved && (curvature.rows < 0 || weights || curvature.is_old(first, n))) begin_curvature(first, n - first);
  if (often || solved) look_at_new_rows(n, weights, first);
  uncertainty_ = curvature.rows < 0 ? nullptr : make_uncertainty();
  return often && curvature.rows >= 0 ? curvature.next() : NEVER;
}

// Before members learn, since their predictions of the new rows are known; not if all rows are looked at after that.
void Learner::look_before_solve(int64_t n) {
  if (!predicts() || !knows_rows() || members[0].settings.forgets || curvature.is_old(members[0].base, n)) return;
  weigh_members();
  look_at_new_rows(n, nullptr, 0);
}

// weights: of rows from `first` on, or null
void Learner::look_at_new_rows(int64_t n, const double* weights, int64_t first) {
  while (curvature.rows >= 0 && curvature.rows < n) {
    const int64_t from = curvature.rows, some = std::min(ROWS_AT_ONCE, n - from), M = present();
    z_.resize(M * some), h_.resize(some);
    all_predictions(from, some, z_.data());
    mean_curvature(z_.data(), M, some, some, weights_.data(), h_.data());
    for (int64_t r = 0; weights && r < some; r++) h_[r] *= weights[from - first + r];
    add_curvature(from, some, h_.data());
  }
}

int64_t Learner::solve_at() const {
  int64_t at = members[0].checkpoint;
  for (int i = 1; i < present(); i++) at = std::min(at, members[i].checkpoint);
  return at;
}

void Learner::resume(const LearnedColumns& log) {
  read(log);
  summed_from_ = -1;
  weigh_members();
  act(std::vector<bool>(members.size(), true));
  checkpoint = std::min(solve_at(), look_at_rows(learned, false));
}

void Learner::predicted(int64_t row, const double* scores, int64_t K, int64_t action) {
  if (learned + predicted_.rows() == row) predicted_.add(scores, K, action);
}

// z [present, n] of rows `from` on.
void Learner::all_predictions(int64_t from, int64_t n, double* z) {
  const int64_t first = from - learned, known = first < 0 ? 0 : std::clamp<int64_t>(predicted_.rows() - first, 0, n);
  if (known > 0) predicted_.read(first, known, z, n);
  if (known == n) return;
  const int64_t M = present(), K = std::max(K_, 1);
  Predictions again;
  again.begin(predicting());
  std::vector<double> scores(ROWS_IN_LANES * M * K);
  for (int64_t row = from + known; row < from + n; row += ROWS_IN_LANES) {
    const int64_t some = std::min(ROWS_IN_LANES, from + n - row);
    score(row, some, scores.data());
    for (int64_t r = 0; r < some; r++) again.add(scores.data() + r * M * K, K, K_ == 0 ? 0 : log_.actions[row + r]);
  }
  again.read(0, n - known, z + known, n);
}

std::vector<Predictions::Member> Learner::predicting() const {
  std::vector<Predictions::Member> made;
  for (int i = 0; i < present(); i++) made.push_back({members[i].settings.competing, members[i].params.back()});
  return made;
}

// How well each member predicted new rows before learning from them. Returns whether they show a change.
bool Learner::weigh() {
  const int64_t M = present();
  if (M == 1 || learned == log_.n) return false;
  std::vector<double> z;
  for (int64_t from = learned; from < log_.n; from += ROWS_AT_ONCE) {
    const int64_t some = std::min(ROWS_AT_ONCE, log_.n - from), block = static_cast<int64_t>(watch_.block);
    z.resize(M * some);
    all_predictions(from, some, z.data());
    const double* rewards = fractions_ + from;
    for (int64_t i = 0; i < M; i++) gains[i] += prediction_sums(z.data() + i * some, rewards, some, 0, 1).likelihood;
    if (watch_.monitor < 0 || M <= watch_.monitor) continue;
    for (int64_t first = 0; first < some; first += block) {
      const int64_t own = std::min(block, some - first);
      if (watch(z.data() + first, some, own, rewards + first, from + first + own)) return true;
    }
  }
  return false;
}

// Whether a block, the last of `rows` rows, shows a change. See `o2pl.engine.change`.
bool Learner::watch(const double* z, int64_t stride, int64_t n, const double* rewards, int64_t rows) {
  const auto M = static_cast<size_t>(present());
  const auto lead_of_long = [&] {
    double best = -HUGE_VAL;
    for (size_t i = 0; i < watched.size(); i++)
      if (static_cast<int>(i) != watch_.monitor) best = std::max(best, watched[i].score);
    return best;
  };
  const double joining = watched.empty() ? 0 : lead_of_long();  // new members start with the score of the best long one
  while (watched.size() < M) watched.push_back({joining, 0, 0, 0, 0, 0});
  for (size_t i = 0; i < M; i++)
    watched[i] = o2::watched(watched[i], z + static_cast<int64_t>(i) * stride, rewards, n, watch_.memory, watch_.block);
  const double ahead = watched[watch_.monitor].score - lead_of_long();
  if (ahead <= watch_.threshold || rows - base() <= watch_.apart) return false;
  found.push_back({rows, rows - watch_.kept, ahead});
  watched.clear();
  return true;
}

// All members but the monitor forget what was before the base.
void Learner::start_again() {
  gains.clear();
  for (int i = 0; i < static_cast<int>(members.size()); i++) {
    LearnedMember& member = members[i];
    if (i != watch_.monitor) {
      member.forget(n_params(member.settings.features));
      member.base = base();
    }
    if (member.settings.joins <= log_.n - base()) gains.push_back(member.settings.prior);
  }
}

void Learner::weigh_members() {
  const double rate = std::min(1.0, 3 / std::sqrt(static_cast<double>(learned - base()) + 1)) / dispersion;
  weights_.resize(gains.size());
  exponential_weights(gains, rate, weights_);
}

void Learner::act(const std::vector<bool>& changed) {
  if (mean_base != base() || learned < mean_rows) mean_base = mean_rows = base(), mean_total = 0;
  for (int64_t r = mean_rows; r < learned; r++) mean_total += fractions_[r];
  mean_rows = learned;
  count_plays();
  std::vector<int64_t> plays(K_);
  std::vector<double> paid(K_);
  for (int k = 0; k < K_; k++) plays[k] = plays_[k] - forgotten_plays_[k], paid[k] = paid_[k] - forgotten_paid_[k];
  const double mean = (mean_total + 1) / static_cast<double>(mean_rows - mean_base + 2);
  predicted_.begin(predicting());
  acting_ = choices_.acting(weights_, plays, mean, paid);
  if (predicts())  // competing, τ, and no other level and slope: see `Acting`
    for (int i = 0; i < present(); i++) {
      double* own = acting_.data() + 4 + present() + PREDICTING * i;
      own[0] = members[i].settings.competing, own[1] = members[i].params.back(), own[2] = 0, own[3] = 1;
    }
  renew(changed);
}

// Plays and rewards of each action, of all rows and of those before the base. Real-valued actions are not counted.
void Learner::count_plays() {
  if (K_ == 0) return;
  if (learned < counted_) counted_ = 0, plays_.assign(K_, 0), paid_.assign(K_, 0.0);
  for (; counted_ < learned; counted_++) plays_[log_.actions[counted_]]++, paid_[log_.actions[counted_]] += fractions_[counted_];
  if (forgotten_ != base()) {
    forgotten_ = base(), forgotten_plays_.assign(K_, 0), forgotten_paid_.assign(K_, 0.0);
    for (int64_t r = 0; r < forgotten_; r++) forgotten_plays_[log_.actions[r]]++, forgotten_paid_[log_.actions[r]] += fractions_[r];
  }
}

Learner::Level Learner::level_of(int64_t start, const double* weights) {
  WeightedSums sums;
  if (weights || start != base()) {
    sums = weighted_sums(fractions_ + start, weights, log_.n - start);
  } else {  // members that learn from all rows since the base share these
    if (summed_from_ != start || summed_to_ > log_.n) summed_from_ = summed_to_ = start, summed_ = {};
    summed_ = weighted_sums(fractions_ + summed_to_, nullptr, log_.n - summed_to_, summed_);
    summed_to_ = log_.n, sums = summed_;
  }
  const double b = std::min(std::max((sums.values + PRIOR_ROWS) / (sums.weights + PRIOR_ROWS), ENDS), 1 - ENDS);
  return {sums.weights, log_of(b / (1 - b))};
}

void Learner::descend_member(LearnedMember& member, const Descending& descending, double size, double level) const {
  if (!member.settings.competing) member.params.back() = level;
  const Descent done = descending(member.params, member.pairs(), {member.settings.iterations, member.settings.tolerance, NEGLIGIBLE / size});
  member.solves++, member.evaluations += done.evaluations;
}

void exponential_weights(std::span<const double> gains, double rate, std::span<double> weights) {
  const double top = *std::max_element(gains.begin(), gains.end());
  double total = 0;
  for (size_t i = 0; i < gains.size(); i++) total += weights[i] = exp_of(rate * (gains[i] - top));
  for (double& weight : weights) weight /= total;
}

}  // namespace o2
