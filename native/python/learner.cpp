// Learners of the compiled core: members on the columns of a log, and the Python objects that say when they learn.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "python/columns.hpp"
#include "python/learners.hpp"
#include "python/module.hpp"
#include "python/uncertainty.hpp"

namespace nb = nanobind;
using o2::Array, o2::array_of, o2::KeptArray, o2::NewArray;

namespace {

// Calls an object with the methods of `o2::Choices`. Learning runs without the GIL.
class AskedChoices final : public o2::Choices {
 public:
  explicit AskedChoices(nb::object asked) : asked_(std::move(asked)) {}

  int64_t after(int member, int64_t rows, bool faint) override {
    const nb::gil_scoped_acquire acquired;
    return nb::cast<int64_t>(asked_.attr("after")(member, rows, faint));
  }
  int64_t start(int member, int64_t rows) override {
    const nb::gil_scoped_acquire acquired;
    return nb::cast<int64_t>(asked_.attr("start")(member, rows));
  }
  const double* weights(int member, int64_t rows) override {
    const nb::gil_scoped_acquire acquired;
    const nb::object found = asked_.attr("weights")(member, rows);
    if (found.is_none()) return nullptr;
    kept_.emplace_back(found);
    return kept_.back().view().data;
  }
  o2::Pessimism pessimism(int64_t rows) override {
    const nb::gil_scoped_acquire acquired;
    const auto [alpha, penalty] = nb::cast<std::pair<double, std::array<double, 5>>>(asked_.attr("pessimism")(rows));
    const auto& [at, t, log_inv_delta, p, scale] = penalty;
    return {alpha, {at, t, log_inv_delta, p, scale}};
  }
  std::vector<double> acting(std::span<const double> weights, std::span<const int64_t> plays, double mean,
                             std::span<const double> rewards) override {
    const nb::gil_scoped_acquire acquired;
    const nb::object found = asked_.attr("acting")(NewArray<double>(weights), NewArray<int64_t>(plays), mean, NewArray<double>(rewards));
    return KeptArray<double>(found).copied();
  }
  void forget() { kept_.clear(); }

 private:
  nb::object asked_;
  std::vector<KeptArray<double>> kept_;  // weights, while members learn from them
};

o2::MemberSettings member_settings(nb::handle given) {
  const auto of = nb::borrow<nb::tuple>(given);
  o2::expect(of.size() == 10, "members: expected ten settings of each");
  return {nb::cast<bool>(of[0]), nb::cast<double>(of[1]), nb::cast<double>(of[2]), nb::cast<int>(of[3]), nb::cast<int64_t>(of[4]),
          nb::cast<double>(of[5]), nb::cast<int64_t>(of[6]), nb::cast<int64_t>(of[7]), nb::cast<double>(of[8]), nb::cast<bool>(of[9])};
}

o2::WatchSettings watch_settings(nb::handle given) {
  if (given.is_none()) return {};
  const auto of = nb::borrow<nb::tuple>(given);
  o2::expect(of.size() == 6, "watch: expected six settings");
  return {nb::cast<int>(of[0]), nb::cast<double>(of[1]), nb::cast<double>(of[2]), nb::cast<double>(of[3]), nb::cast<int64_t>(of[4]),
          nb::cast<int64_t>(of[5])};
}

}  // namespace

namespace o2 {

GivenLearner::GivenLearner(nb::object columns, int K, std::pair<double, double> ends, nb::list given, nb::handle watching, nb::object asked,
                           int features)
    : columns(std::move(columns)), K(K), ends(ends), watch(watch_settings(watching)),
      choices(std::make_unique<AskedChoices>(std::move(asked))) {
  for (const nb::handle each : given) {
    members.push_back(member_settings(each));
    expect(members.back().features >= 0 && members.back().features < features && members.back().memory >= 0,
           "members: found features that are not there");
  }
  expect(!members.empty() && K >= 0, "members: found none");
  expect(watch.monitor < static_cast<int>(members.size()) && (watch.monitor < 0 || watch.block >= 1), "watch: found no such member");
}

CompiledLearner::~CompiledLearner() = default;

void CompiledLearner::load_kept(LearnedMember& to, nb::tuple of) {
  expect(of.size() == 4, "member: expected pairs of L-BFGS");
  to.steps = KeptArray<float, 2>(of[0]).copied(), to.changes = KeptArray<float, 2>(of[1]).copied();
  to.inner = KeptArray<double>(of[2]).copied(), to.stride = static_cast<int64_t>(to.params.size());
  const KeptArray<int64_t> at(of[3]);
  const auto memory = static_cast<size_t>(to.settings.memory);
  expect(to.inner.size() == memory && to.steps.size() == memory * to.params.size() && to.changes.size() == to.steps.size() &&
             at.view().size() == 2,
         "member: found arrays that do not fit");
  to.at = at.view()[0], to.count = at.view()[1];
  expect(to.at >= 0 && to.count >= 0 && to.at < to.settings.memory && to.count <= to.settings.memory, "member: found pairs out of range");
}

nb::tuple CompiledLearner::saved_kept(const LearnedMember& from) const {
  const auto memory = from.settings.memory, size = static_cast<int64_t>(from.params.size());
  NewArray<float, 2> steps({memory, size}), changes({memory, size});
  for (int64_t k = 0; k < memory; k++) {
    std::copy_n(from.steps.begin() + k * from.stride, size, steps.view.data + k * size);
    std::copy_n(from.changes.begin() + k * from.stride, size, changes.view.data + k * size);
  }
  return nb::make_tuple(steps.object, changes.object, array_of(from.inner), array_of(std::vector<int64_t>{from.at, from.count}));
}

void CompiledLearner::load_member(LearnedMember& to, nb::handle given) {
  const auto of = nb::borrow<nb::tuple>(given);
  to.params = KeptArray<double>(of[0]).copied();
  const KeptArray<int64_t> numbers(of[1]);
  expect(numbers.view().size() == 5, "member: expected five numbers");
  const auto& n = numbers.view();
  to.checkpoint = n[0], to.base = n[1], to.known = n[2], to.solves = n[3], to.evaluations = n[4];
  load_kept(to, nb::borrow<nb::tuple>(of[2]));
}

nb::tuple CompiledLearner::saved_member(const LearnedMember& from) const {
  return nb::make_tuple(array_of(from.params),
                        array_of(std::vector<int64_t>{from.checkpoint, from.base, from.known, from.solves, from.evaluations}),
                        saved_kept(from));
}

LearnedColumns CompiledLearner::log() {
  attach_rows();
  const auto& columns = *nb::inst_ptr<LogColumns>(columns_);
  return {columns.actions(), columns.numbers(), columns.rewards(), columns.propensities(), columns.n};
}

bool CompiledLearner::has_rows() const { return nb::inst_ptr<LogColumns>(columns_)->attached(); }

bool CompiledLearner::learn(int threads) {
  const LearnedColumns rows = log();
  static_cast<AskedChoices*>(choices_.get())->forget();
  const nb::gil_scoped_release released;
  return learner_->learn(rows, threads);
}

bool CompiledLearner::look() {
  constexpr int64_t FEW = 2048;  // other threads wait meanwhile
  const LearnedColumns rows = log();
  if (rows.n >= learner_->solve_at() || rows.n - learner_->curvature.rows > FEW) return false;
  return learner_->learn(rows, 1);
}

void CompiledLearner::load(nb::tuple state) {
  const nb::list features(state[0]), members(state[1]);
  expect(members.size() == learner_->members.size(), "state: found another number of members");
  const int64_t observed = load_features(features);
  for (size_t k = 0; k < members.size(); k++) load_member(learner_->members[k], members[k]);
  learner_->gains = KeptArray<double>(state[2]).copied();
  learner_->learned = nb::cast<int64_t>(state[3]);
  const KeptArray<double, 2> watched(state[4]);  // [6, M]
  expect(watched.view().shape[0] == 6 && !learner_->gains.empty() && learner_->gains.size() <= members.size(), "state: found another shape");
  const int64_t M = watched.view().shape[1];
  const double* w = watched.view().data;
  learner_->watched.clear();
  for (int64_t m = 0; m < M; m++) learner_->watched.push_back({w[m], w[M + m], w[2 * M + m], w[3 * M + m], w[4 * M + m], w[5 * M + m]});
  learner_->found.clear();
  for (const nb::handle each : nb::list(state[5])) {
    const auto of = nb::borrow<nb::tuple>(each);
    learner_->found.push_back({nb::cast<int64_t>(of[0]), nb::cast<int64_t>(of[1]), nb::cast<double>(of[2])});
  }
  const auto mean = nb::borrow<nb::tuple>(state[6]);
  learner_->mean_base = nb::cast<int64_t>(mean[0]), learner_->mean_rows = nb::cast<int64_t>(mean[1]);
  learner_->mean_total = nb::cast<double>(mean[2]);
  o2::load(learner_->curvature, state[7]);
  const LearnedColumns rows = log();
  expect(observed <= rows.n && learner_->learned <= rows.n && learner_->mean_rows <= rows.n && learner_->base() <= rows.n,
         "state: found more rows than the log has");
  const nb::gil_scoped_release released;
  learner_->resume(rows);
}

nb::tuple CompiledLearner::state() const {
  nb::list members, found;
  for (const auto& each : learner_->members) members.append(saved_member(each));
  for (const auto& each : learner_->found) found.append(nb::make_tuple(each.row, each.base, each.evidence));
  const auto M = static_cast<int64_t>(learner_->watched.size());
  NewArray<double, 2> watched({6, M});
  for (int64_t m = 0; m < M; m++) {
    const Watched& own = learner_->watched[m];
    const double values[] = {own.score, own.level, own.turn, own.h, own.hz, own.hzz};
    for (int i = 0; i < 6; i++) watched.view.data[i * M + m] = values[i];
  }
  return nb::make_tuple(saved_features(), members, array_of(learner_->gains), learner_->learned, watched.object, found,
                        nb::make_tuple(learner_->mean_base, learner_->mean_rows, learner_->mean_total), saved(learner_->curvature));
}

}  // namespace o2

void bind_learner(nb::module_& m) {
  using o2::CompiledLearner;
  m.def("exponential_weights", [](Array<const double> gains, double rate) {
    o2::expect(gains.size() > 0, "gains: found none");
    NewArray<double> weights({gains.size()});
    o2::exponential_weights(gains.span(), rate, weights.view.span());
    return weights;
  }, nb::arg("gains"), nb::arg("rate"), "Return weights ∝ exp(rate · gain) that sum to 1. [M]");
  nb::class_<CompiledLearner>(m, "CompiledLearner", "Members with the outcome objective, learned from in the compiled core.")
      .def("learn", &CompiledLearner::learn, nb::arg("threads"),
           "Learn what is due. False: nothing was done; that takes more than a few steps, and is left to the composed parts.")
      .def("load", &CompiledLearner::load, nb::arg("state"), nb::sig("def load(self, state: tuple[typing.Any, ...]) -> None"), "Continue from what `state` returned.")
      .def("state", &CompiledLearner::state, nb::sig("def state(self) -> tuple[typing.Any, ...]"), "Return what was learned.")
      .def_prop_ro("has_rows", &CompiledLearner::has_rows, "Whether rows are where it can read them.")
      .def_prop_ro("checkpoint", &CompiledLearner::checkpoint, "Number of rows at which to learn next.")
      .def_prop_ro("solve_at", &CompiledLearner::solve_at, "Number of rows at which members learn next.")
      .def_prop_rw("dispersion", &CompiledLearner::dispersion, &CompiledLearner::set_dispersion,
                   "Of rewards: members are weighted with the rate over it.");
  nb::class_<o2::CompiledDense, CompiledLearner>(m, "CompiledDense", "A learner on rows of numbers.")
      .def(nb::init<nb::object, int, std::pair<double, double>, nb::list, nb::handle, nb::object, nb::list, std::vector<int64_t>, int64_t>(),
           nb::arg("columns"), nb::arg("n_actions"), nb::arg("rewards"), nb::arg("members"), nb::arg("watch").none(), nb::arg("choices"),
           nb::arg("features"), nb::arg("panel_rows"), nb::arg("held"),
           nb::sig("def __init__(self, columns: LogColumns, n_actions: int, rewards: tuple[float, float], members: list[typing.Any], "
                   "watch: tuple[typing.Any, ...] | None, choices: typing.Any, features: list[typing.Any], panel_rows: "
                   "collections.abc.Sequence[int], held: int) -> None"));
  nb::class_<o2::CompiledCurve, CompiledLearner>(m, "CompiledCurve", "A learner of a reward curve over a real-valued action.")
      .def(nb::init<nb::object, std::pair<double, double>, nb::list, nb::object, nb::list, nb::tuple, nb::tuple>(), nb::arg("columns"),
           nb::arg("rewards"), nb::arg("members"), nb::arg("choices"), nb::arg("features"), nb::arg("curve"), nb::arg("begun"),
           nb::sig("def __init__(self, columns: LogColumns, rewards: tuple[float, float], members: list[typing.Any], "
                   "choices: typing.Any, features: list[typing.Any], curve: tuple[typing.Any, ...], "
                   "begun: tuple[typing.Any, ...]) -> None"));
  nb::class_<o2::CompiledGaussian, CompiledLearner>(m, "CompiledGaussian", "A learner of a normal policy with the pessimistic objective.")
      .def(nb::init<nb::object, std::pair<double, double>, nb::list, nb::object, nb::list, nb::tuple>(), nb::arg("columns"),
           nb::arg("rewards"), nb::arg("members"), nb::arg("choices"), nb::arg("features"), nb::arg("normal"),
           nb::sig("def __init__(self, columns: LogColumns, rewards: tuple[float, float], members: list[typing.Any], "
                   "choices: typing.Any, features: list[typing.Any], normal: tuple[float, float, float, float, int, int]) -> None"));
  nb::class_<o2::CompiledHashed, CompiledLearner>(m, "CompiledHashed", "A learner on sparse rows of hashed features.")
      .def(nb::init<nb::object, int, std::pair<double, double>, nb::list, nb::handle, nb::object, int64_t>(),
           nb::arg("columns"), nb::arg("n_actions"), nb::arg("rewards"), nb::arg("members"), nb::arg("watch").none(), nb::arg("choices"),
           nb::arg("panel"),
           nb::sig("def __init__(self, columns: LogColumns, n_actions: int, rewards: tuple[float, float], members: list[typing.Any], "
                   "watch: tuple[typing.Any, ...] | None, choices: typing.Any, panel: int) -> None"));
}
