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
    made.directions = directions.copied(), made.growth = nb::cast<double>(of[5]);
    states.push_back(std::move(made));
  }
  return states;
}

}  // namespace

// -- rows of numbers

void CompiledNumeric::attach_rows() {
  const auto& columns = *nb::inst_ptr<LogColumns>(columns_);
  numeric().contexts = columns.values();
  expect(columns.values() && columns.width() == numeric().features[0].d, "log: found none, or one of another width");
}

int64_t CompiledNumeric::load_features(nb::list state) {
  expect(state.size() == numeric().features.size(), "state: found another number of features");
  int64_t observed = 0;
  for (size_t k = 0; k < state.size(); k++) {
    const auto of = nb::borrow<nb::tuple>(state[k]);
    RunningFeatures& features = numeric().features[k];
    features.rows = nb::cast<int64_t>(of[0]);
    load_moments(features.inputs, of[1]), load_moments(features.products, of[2]);
    expect(!features.standardised || static_cast<int>(features.inputs.mean.size()) == features.d, "state: found features of another width");
    observed = std::max(observed, features.rows);
  }
  return observed;
}

nb::list CompiledNumeric::saved_features() const {
  nb::list states;
  for (const auto& each : numeric().features) states.append(nb::make_tuple(each.rows, saved_moments(each.inputs), saved_moments(each.products)));
  return states;
}

CompiledDense::CompiledDense(nb::object columns, int K, std::pair<double, double> ends, nb::list members, nb::handle watch,
                             nb::object choices, nb::list features, std::vector<int64_t> panel_rows, int64_t held)
    : CompiledDense(GivenLearner(std::move(columns), K, ends, members, watch, std::move(choices), static_cast<int>(features.size())),
                    features, std::move(panel_rows), held) {}

CompiledDense::CompiledDense(GivenLearner&& given, nb::list features, std::vector<int64_t> panel_rows, int64_t held)
    : CompiledNumeric(given) {
  expect(features.size() == panel_rows.size(), "features: found another number than panel_rows");
  learner_ = std::make_unique<DenseLearner>(given.K, given.ends.first, given.ends.second, std::move(given.members), given.watch,
                                            *choices_, running_features(features), std::move(panel_rows), held);
}

// -- a reward curve

namespace {

CurveState curve_state(nb::tuple of) {
  expect(of.size() == 6, "curve: expected six arrays");
  CurveState made;
  made.first_row = KeptArray<double>(of[0]).copied(), made.rows = static_cast<int64_t>(KeptArray<double>(of[1]).view()[0]);
  made.covariance = KeptArray<double, 2>(of[2]).copied(), made.centre = KeptArray<double>(of[3]).copied();
  made.deviations = KeptArray<double, 2>(of[4]).copied(), made.noise = KeptArray<double>(of[5]).copied();
  return made;
}

CurveSettings curve_settings(nb::tuple of) {
  expect(of.size() == 11, "curve: expected eleven settings");
  const auto numbers = KeptArray<double>(of[1]).copied();
  expect(numbers.size() == 3, "curve: expected low, high, and log(high / low) or 0");
  CurveSettings made{nb::cast<int64_t>(of[0]), nb::cast<int64_t>(of[3]), nb::cast<int64_t>(of[10]), Bounds::of(numbers.data()), nb::cast<int64_t>(of[2]),
                     KeptArray<int64_t>(of[6]).copied(), KeptArray<int64_t>(of[7]).copied(), KeptArray<double>(of[8]).copied(),
                     KeptArray<double, 2>(of[9]).copied(), nb::cast<double>(of[4]), nb::cast<double>(of[5])};
  expect(made.cells > 0 && made.draws > 0 && made.degree >= 0 && made.basis.size() == static_cast<size_t>(made.cells * (made.degree + 1)),
         "curve: found another number of cells");
  return made;
}

void check_terms(const CurveSettings& curve, const CurveState& begun) {
  const size_t D = curve.scales.size(), S = static_cast<size_t>(curve.draws);
  expect(curve.powers.size() == D && curve.features.size() == D, "curve: found terms of several numbers");
  for (size_t i = 0; i < D; i++)
    expect(0 <= curve.powers[i] && curve.powers[i] <= curve.degree && 0 <= curve.features[i] && curve.features[i] < curve.width,
           "curve: found a term that is not there");
  expect(begun.covariance.size() == D * D && begun.centre.size() == D && begun.deviations.size() == S * D && begun.noise.size() == 2,
         "curve: found a state of another number of terms");
}

}  // namespace

CompiledCurve::CompiledCurve(nb::object columns, std::pair<double, double> ends, nb::list members, nb::object choices, nb::list features,
                             nb::tuple curve, nb::tuple begun)
    : CompiledCurve(GivenLearner(std::move(columns), 0, ends, members, nb::none(), std::move(choices), 1), features, curve, begun) {}

CompiledCurve::CompiledCurve(GivenLearner&& given, nb::list features, nb::tuple curve, nb::tuple begun) : CompiledNumeric(given) {
  auto running = running_features(features);
  expect(running.size() == 1 && given.members.size() == 1, "curve: expected one member");
  CurveSettings settings = curve_settings(curve);
  CurveState state = curve_state(begun);
  check_terms(settings, state);
  learner_ = std::make_unique<CurveLearner>(given.ends.first, given.ends.second, given.members[0], *choices_, std::move(running),
                                            std::move(settings), std::move(state));
}

void CompiledCurve::load_kept(LearnedMember&, nb::tuple kept) {
  const CurveState& begun = own().begun();
  expect(own().features[0].plan().width() == own().settings().width, "state: found features of another width");
  CurveState found = kept.size() ? curve_state(kept) : begun;
  expect(found.covariance.size() == begun.covariance.size() && found.centre.size() == begun.centre.size() &&
             found.deviations.size() == begun.deviations.size() && found.noise.size() == 2 && found.rows >= 0,
         "state: found a curve of another number of terms");
  own().state = std::move(found);
}

nb::tuple CompiledCurve::saved_kept(const LearnedMember&) const {
  const CurveState& from = own().state;
  if (from.first_row.empty()) return nb::make_tuple();
  const auto D = static_cast<int64_t>(from.centre.size()), S = static_cast<int64_t>(from.deviations.size()) / D;
  NewArray<double, 2> covariance({D, D}), deviations({S, D});
  std::copy(from.covariance.begin(), from.covariance.end(), covariance.view.data);
  std::copy(from.deviations.begin(), from.deviations.end(), deviations.view.data);
  return nb::make_tuple(array_of(from.first_row), array_of(std::vector<double>{static_cast<double>(from.rows)}), covariance.object,
                        array_of(from.centre), deviations.object, array_of(from.noise));
}

// -- a normal policy

CompiledGaussian::CompiledGaussian(nb::object columns, std::pair<double, double> ends, nb::list members, nb::object choices, nb::list features,
                                   nb::tuple normal)
    : CompiledGaussian(GivenLearner(std::move(columns), 0, ends, members, nb::none(), std::move(choices), 1), features, normal) {}

CompiledGaussian::CompiledGaussian(GivenLearner&& given, nb::list features, nb::tuple of) : CompiledNumeric(given) {
  auto running = running_features(features);
  expect(running.size() == 1 && given.members.size() == 1 && of.size() == 6, "normal: expected one member and six settings");
  const NormalSettings settings{nb::cast<double>(of[0]), nb::cast<double>(of[1]), nb::cast<double>(of[2]), nb::cast<double>(of[3]),
                                nb::cast<int64_t>(of[4]), nb::cast<int64_t>(of[5])};
  expect(settings.panel_rows > 0, "normal: expected panels of 1 row or more");
  learner_ = std::make_unique<GaussianLearner>(given.ends.first, given.ends.second, given.members[0], *choices_, std::move(running), settings);
}

// -- sparse rows of hashed features

CompiledHashed::CompiledHashed(nb::object columns, int K, std::pair<double, double> ends, nb::list members, nb::handle watch,
                               nb::object choices, int64_t panel)
    : CompiledHashed(GivenLearner(std::move(columns), K, ends, members, watch, std::move(choices), 1), panel) {}

CompiledHashed::CompiledHashed(GivenLearner&& given, int64_t panel) : CompiledLearner(given) {
  expect(panel > 0, "panel: expected 1 or more");
  for (const MemberSettings& each : given.members) expect(given.K > 0 || !each.competing, "members: found competing actions of sets");
  learner_ = std::make_unique<HashedLearner>(given.K, given.ends.first, given.ends.second, std::move(given.members), given.watch,
                                             *choices_, panel);
}

void CompiledHashed::attach_rows() {
  const auto& columns = *nb::inst_ptr<LogColumns>(columns_);
  expect(columns.sparse() && (columns.sets() != nullptr) == (own().n_actions() == 0), "log: found no sparse rows, or of another kind");
  own().contexts = columns.entries(), own().sets = columns.sets();
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
