// Learners of each kind of rows: what they are made of, and the states of their features to Python and back.
#include "python/learners.hpp"

#include <utility>

#include "python/columns.hpp"

namespace nb = nanobind;

namespace o2 {
namespace {

void load_moments(Moments& to, nb::handle given) {
  const auto of = nb::borrow<nb::tuple>(given);
  to.count = KeptArray<double>(of[0]).view()[0];
  to.mean = KeptArray<double>(of[1]).copied(), to.squares = KeptArray<double>(of[2]).copied();
  const KeptArray<bool> binary(of[3]);
  to.binary = {};
  to.binary.make_room(binary.view().size());
  to.binary.append(binary.view().data, binary.view().size());
  to.shift = KeptArray<float>(of[4]).copied(), to.scale = KeptArray<float>(of[5]).copied();
  const size_t d = to.mean.size();
  expect(to.squares.size() == d && to.binary.size() == static_cast<int64_t>(d) && to.shift.size() == d && to.scale.size() == d,
             "moments: found arrays of several lengths");
}

nb::tuple saved_moments(const Moments& from) {
  return nb::make_tuple(array_of(std::vector<double>{from.count}), array_of(from.mean), array_of(from.squares),
                        NewArray<bool>(from.binary.span()).object, array_of(from.shift), array_of(from.scale));
}

std::vector<RunningFeatures> running_features(nb::list given) {
  std::vector<RunningFeatures> states;
  for (const nb::handle each : given) {
    const auto of = nb::borrow<nb::tuple>(each);
    RunningFeatures made;
    made.d = nb::cast<int>(of[0]), made.standardised = nb::cast<bool>(of[1]), made.intercept = nb::cast<bool>(of[3]);
    made.clip = nb::cast<float>(nb::float_(of[2]));
    const KeptArray<float, 2> directions(of[4]);  // [m, d]
    expect(made.d > 0 && (directions.view().shape[0] == 0 || directions.view().shape[1] == made.d), "features: found directions of another width");
    made.directions = directions.copied();
    states.push_back(std::move(made));
  }
  return states;
}

}  // namespace

// -- rows of numbers

CompiledDense::CompiledDense(nb::object columns, int K, std::pair<double, double> ends, nb::list members, nb::handle watch,
                             nb::object choices, nb::list features, std::vector<int64_t> panel_rows, int64_t held)
    : CompiledDense(GivenLearner(std::move(columns), K, ends, members, watch, std::move(choices), static_cast<int>(features.size())),
                    features, std::move(panel_rows), held) {}

CompiledDense::CompiledDense(GivenLearner&& given, nb::list features, std::vector<int64_t> panel_rows, int64_t held)
    : CompiledLearner(given) {
  expect(features.size() == panel_rows.size(), "features: found another number than panel_rows");
  learner_ = std::make_unique<DenseLearner>(given.K, given.ends.first, given.ends.second, std::move(given.members), given.watch,
                                            *choices_, running_features(features), std::move(panel_rows), held);
}

void CompiledDense::attach_rows() {
  const auto& columns = *nb::inst_ptr<LogColumns>(columns_);
  own().contexts = columns.values();
  expect(columns.values() && columns.width() == own().features[0].d, "log: found none, or one of another width");
}

int64_t CompiledDense::load_features(nb::list state) {
  expect(state.size() == own().features.size(), "state: found another number of features");
  int64_t observed = 0;
  for (size_t k = 0; k < state.size(); k++) {
    const auto of = nb::borrow<nb::tuple>(state[k]);
    RunningFeatures& features = own().features[k];
    features.rows = nb::cast<int64_t>(of[0]);
    load_moments(features.inputs, of[1]), load_moments(features.products, of[2]);
    expect(!features.standardised || static_cast<int>(features.inputs.mean.size()) == features.d, "state: found features of another width");
    observed = std::max(observed, features.rows);
  }
  return observed;
}

nb::list CompiledDense::saved_features() const {
  nb::list states;
  for (const auto& each : own().features) states.append(nb::make_tuple(each.rows, saved_moments(each.inputs), saved_moments(each.products)));
  return states;
}

// -- sparse rows of hashed features

CompiledHashed::CompiledHashed(nb::object columns, int K, std::pair<double, double> ends, nb::list members, nb::handle watch,
                               nb::object choices, int64_t panel)
    : CompiledHashed(GivenLearner(std::move(columns), K, ends, members, watch, std::move(choices), 1), panel) {}

CompiledHashed::CompiledHashed(GivenLearner&& given, int64_t panel) : CompiledLearner(given) {
  expect(panel > 0, "panel: expected 1 or more");
  learner_ = std::make_unique<HashedLearner>(given.K, given.ends.first, given.ends.second, std::move(given.members), given.watch,
                                             *choices_, panel);
}

void CompiledHashed::attach_rows() {
  const auto& columns = *nb::inst_ptr<LogColumns>(columns_);
  expect(columns.sparse(), "log: found no sparse rows");
  own().contexts = columns.entries();
}

int64_t CompiledHashed::load_features(nb::list state) {
  expect(state.size() == 1, "state: found another number of features");
  const auto of = nb::borrow<nb::tuple>(state[0]);
  HashedFeatures& features = own().features;
  own().forget_rows();
  features.rows = nb::cast<int64_t>(of[0]);
  features.feature = KeptArray<int32_t>(of[1]).copied();
  features.count = KeptArray<double>(of[2]).copied(), features.mean = KeptArray<double>(of[3]).copied();
  features.squares = KeptArray<double>(of[4]).copied();
  const KeptArray<bool> plain(of[5]);
  features.plain = {};
  features.plain.make_room(plain.view().size());
  features.plain.append(plain.view().data, plain.view().size());
  features.scale = KeptArray<float, 2>(of[6]).copied();
  const nb::object table = of[7];
  features.slot_of = nb::cast<Array<int32_t>>(table, false).span();
  if (tables_.empty() || !tables_.back().is(table)) tables_.push_back(table);
  const size_t slots = features.feature.size();
  expect(slots > 0 && features.count.size() == slots && features.mean.size() == slots && features.squares.size() == slots &&
             features.plain.size() == static_cast<int64_t>(slots) && features.scale.size() == 2 * slots,
         "state: found arrays of several lengths");
  for (const int32_t slot : features.slot_of) expect(slot >= 0, "state: found a slot below 0");
  return features.rows;
}

nb::list CompiledHashed::saved_features() const {
  const HashedFeatures& from = own().features;
  const auto slots = from.slots();
  NewArray<float, 2> scale({slots, 2});
  std::copy(from.scale.begin(), from.scale.end(), scale.view.data);
  nb::list states;
  states.append(nb::make_tuple(from.rows, array_of(from.feature), array_of(from.count), array_of(from.mean), array_of(from.squares),
                               NewArray<bool>(from.plain.span()).object, scale.object, tables_.back()));
  return states;
}

}  // namespace o2
