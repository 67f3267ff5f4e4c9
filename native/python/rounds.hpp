// One call per decision, and one per reward: what an engine does between two times of learning, for numeric rows and
// actions by index or real-valued, and for dictionaries and actions by index. Whatever is unusual is left to the engine: then `act` returns None, `update` and `tell` LEFT.
#pragma once
#include <nanobind/stl/pair.h>

#include <cfloat>
#include <cmath>
#include <utility>

#include "core/normal.hpp"
#include "python/columns.hpp"
#include "python/learners.hpp"
#include "python/numbers.hpp"
#include "python/packed.hpp"
#include "python/pending.hpp"
#include "python/uniforms.hpp"
#include "python/words.hpp"

namespace o2 {

enum Told { LEFT = -1, DONE = 0, DUE = 1 };  // DUE: a row was appended, and it is time to learn

class Rounds {
 public:
  // decision_type: `Decision`, a tuple with an attribute `kept`
  Rounds(nanobind::object decision_type, nanobind::object uniforms, nanobind::object pending, nanobind::object columns,
         std::pair<double, double> rewards)
      : type_(std::move(decision_type)), uniforms_(std::move(uniforms)), pending_(std::move(pending)), columns_(std::move(columns)),
        kept_(nanobind::steal(PyUnicode_InternFromString("kept"))), lowest_(rewards.first), highest_(rewards.second) {}

  int64_t checkpoint = 0;  // number of rows at which to learn
  int64_t busy = 0;        // somebody holds the engine's lock: rows are left to the engine, which waits for it

  // Contexts are dictionaries. See `Words`.
  void read_as(nanobind::object reader, nanobind::object names, uint32_t mask, bool with_sign) {
    words_.read_as(std::move(reader), std::move(names), {mask, with_sign});
  }

  // By index; or, with packed None, all is left to the engine.
  void decide_by(nanobind::handle packed, nanobind::handle acting, nanobind::object names) {
    decide_with(packed, acting);
    names_ = std::move(names), how_ = {};
  }

  // As a compiled learner acts now. Names stay.
  void decide_as(nanobind::object learner) {
    const auto& own = *nanobind::inst_ptr<CompiledLearner>(learner);
    scorer_ = own.scorer(), hashed_ = words_.known() ? own.hashed_scorer() : nullptr, acting_ = own.acting();
    how_ = own.drawing(), checkpoint = own.checkpoint();
    learner_ = std::move(learner), scored_ = -1;
  }

  // Within bounds, in cells. numbers: those of `Cells`
  void decide_within(nanobind::handle packed, nanobind::handle acting, Array<const double> numbers) {
    expect(numbers.size() == 3, "numbers: expected low, high, and log(high / low) or 0");
    decide_with(packed, acting);
    names_ = nanobind::none(), how_ = {Drawing::Kind::within, Bounds::of(numbers.data)};
  }

  // From a normal distribution whose mean is the centre plus the score.
  void decide_normal(nanobind::handle packed, double centre, double scale) {
    decide_with(packed, nanobind::none());
    names_ = nanobind::none(), how_ = {Drawing::Kind::normal, {}, centre, scale};
  }

  nanobind::object act(nanobind::handle context) {
    if (!decides()) return nanobind::none();
    Played action;
    double propensity;
    nanobind::object copy;  // of a dictionary
    if (hashed_) {
      copy = copied(context);
      if (copy.is_none()) return copy;
      context = copy;
    }
    if (!draw(context, action, propensity)) return nanobind::none();
    scored_ = next_number();
    const nanobind::object number = nanobind::steal(PyLong_FromLongLong(scored_));
    PyObject* kind = Py_None;
    if (!copy.is_valid()) {
      auto* array = reinterpret_cast<PyArrayObject*>(context.ptr());
      copy = nanobind::steal(PyBytes_FromStringAndSize(static_cast<const char*>(PyArray_DATA(array)), PyArray_NBYTES(array)));
      kind = reinterpret_cast<PyObject*>(PyArray_DESCR(array));
    }
    nanobind::object decision = decided(action, propensity);
    const nanobind::object kept = nanobind::steal(PyTuple_Pack(3, number.ptr(), copy.ptr(), kind));
    if (!kept.is_valid() || PyObject_SetAttr(decision.ptr(), kept_.ptr(), kept.ptr()) < 0) nanobind::raise_python_error();
    waiting().keep(scored_, decision);
    return decision;
  }

  // One action for each of the next rows of the log, [n].
  nanobind::tuple sample(Array<const float, 2> contexts, Array<const double> uniforms) {
    const auto [n, d] = contexts.shape;
    expect(scorer_ && d == scorer_->inputs() && uniforms.size() == n, "sample: found rows of another width");
    NewArray<int64_t> indices({how_.real() ? 0 : n});
    NewArray<double> numbers({how_.real() ? n : 0}), propensities({n});
    const int64_t row = log().n;
    scored_ = -1;
    for (int64_t r = 0; r < n; r++) {
      Played action;
      draw_action(contexts.data + r * d, uniforms[r], action, propensities.view[r]);
      if (how_.real()) numbers.view[r] = action.number;
      else indices.view[r] = action.index, predict(row + r, action.index);
    }
    return nanobind::make_tuple(how_.real() ? numbers.object : indices.object, propensities.object);
  }

  // The reward of a decision that waits for it.
  int update(nanobind::handle decision, nanobind::handle given) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(decision.ptr())) != type_.ptr() || !free()) return LEFT;
    double reward;
    if (!number_of(given, reward) || !(reward >= lowest_ && reward <= highest_)) return LEFT;
    const nanobind::object kept = nanobind::steal(PyObject_GetAttr(decision.ptr(), kept_.ptr()));
    if (!kept.is_valid()) nanobind::raise_python_error();
    int64_t number;
    if (!read_kept(kept, number)) return LEFT;
    Played action;
    const double propensity = PyFloat_AsDouble(PyTuple_GET_ITEM(decision.ptr(), 1));
    if (!played(PyTuple_GET_ITEM(decision.ptr(), 0), action) || !likely(propensity, 0)) return LEFT;
    if (!has_room_for_row() || !waiting().drop(number)) return LEFT;  // told already, or of another learner
    return append(action, reward, propensity, number);
  }

  // The four parts. They are the newest decision's if it has the same context, action and propensity.
  int tell(nanobind::handle context, nanobind::handle taken, nanobind::handle given, nanobind::handle drawn) {
    double reward, propensity;
    Played action;
    int64_t n = 1;
    if (!free() || !number_of(given, reward) || !number_of(drawn, propensity) || !played(taken.ptr(), action)) return LEFT;
    if (!(reward >= lowest_ && reward <= highest_) || !likely(propensity, LEAST)) return LEFT;
    if (!hashed_ && !read_rows(context, 1, log().width(), given_, n)) return LEFT;
    const nanobind::object newest = waiting().newest();
    int64_t number = -1;
    if (!newest.is_none() && reinterpret_cast<PyObject*>(Py_TYPE(newest.ptr())) == type_.ptr()) {
      Played its_action;
      const nanobind::object kept = nanobind::steal(PyObject_GetAttr(newest.ptr(), kept_.ptr()));
      const bool same = PyFloat_AsDouble(PyTuple_GET_ITEM(newest.ptr(), 1)) == propensity &&
                        played(PyTuple_GET_ITEM(newest.ptr(), 0), its_action) && its_action == action &&
                        kept.is_valid() && is_of(kept, context, number);
      if (!same) number = -1;
    }
    if (number < 0 || !has_room_for_row()) return LEFT;
    waiting().drop(number);
    return append(action, reward, propensity, number);
  }

 private:
  static constexpr double LEAST = 1e-12;  // smaller propensities are left to the engine, which knows its limit
  nanobind::object type_, uniforms_, pending_, columns_, kept_, names_;
  std::shared_ptr<const Scorer> scorer_;  // null, and so is the next one: all is left to the engine
  std::shared_ptr<const HashedScorer> hashed_;
  Words words_;
  HashedRow words_row_, scored_row_;  // as given; as scored
  HashedScorer::Room hashed_room_;
  std::vector<double> acting_;                // `acting_numbers`
  ScoringRoom room_;
  std::vector<float> inputs_;
  nanobind::object learner_;           // the compiled learner that acts, if one does
  int64_t scored_ = -1;          // number of the decision whose scores are in room_.raw; -1: none
  double lowest_, highest_;
  Drawing how_;
  std::vector<float> row_, given_;

  Uniforms& stream() { return *nanobind::inst_ptr<Uniforms>(uniforms_); }
  Pending& waiting() { return *nanobind::inst_ptr<Pending>(pending_); }
  LogColumns& log() { return *nanobind::inst_ptr<LogColumns>(columns_); }
  // The uniform number comes first: fetching it may run Python, and other decisions would use the same work arrays.
  bool draw(nanobind::handle context, Played& action, double& propensity) {
    const double uniform = stream().next();
    if (drawn_from(context, uniform, action, propensity)) return true;
    stream().give_back(uniform);
    return false;
  }

  bool decides() const { return scorer_ || hashed_; }
  int64_t n_actions() const { return hashed_ ? hashed_->K : scorer_->n_actions(); }

  void decide_with(nanobind::handle packed, nanobind::handle acting) {
    hashed_ = nullptr;
    scorer_ = packed.is_none() ? nullptr : nanobind::inst_ptr<Packed>(packed)->scorer;
    acting_ = acting.is_none() ? std::vector<double>() : KeptArray<double>(acting).copied();
    learner_.reset(), scored_ = -1;
  }

  bool drawn_from(nanobind::handle context, double uniform, Played& action, double& propensity) {
    int64_t n = 1;
    if (hashed_) return drawn_from_words(context, uniform, action, propensity);
    if (!scorer_ || !read_rows(context, 1, scorer_->inputs(), inputs_, n)) return false;
    draw_action(inputs_.data(), uniform, action, propensity);
    return true;
  }

  void draw_action(const float* inputs, double uniform, Played& action, double& propensity) {
    if (how_.kind == Drawing::Kind::normal) {
      room_.scores.resize(scorer_->members() * scorer_->n_actions());
      scorer_->scores(inputs, room_.scores.data(), scorer_->n_actions(), room_);
      std::tie(action.number, propensity) = as_pair(draw_normal(how_.centre + room_.scores[0], how_.scale, uniform));
      return;
    }
    scorer_->policy(inputs, 1, Acting(acting_.data(), scorer_->members()), room_);
    const std::vector<double>& pi = room_.pi;
    const auto K = static_cast<int64_t>(pi.size());
    if (how_.kind == Drawing::Kind::within) {
      std::tie(action.number, propensity) = as_pair(draw_number(pi.data(), K, uniform, how_.bounds));
    } else {
      action.index = draw_one(pi.data(), K, uniform);
      propensity = pi[action.index];
    }
  }

  // Tell the learner how its members scored a row when its action was drawn.
  void predict(int64_t row, int64_t action) {
    if (learner_.is_valid()) nanobind::inst_ptr<CompiledLearner>(learner_)->predicted(row, room_.raw.data(), action);
  }

  bool drawn_from_words(nanobind::handle context, double uniform, Played& action, double& propensity) {
    if (!words_.read(context, scored_row_)) return false;
    const int64_t M = hashed_->members(), K = hashed_->K;
    room_.raw.resize(M * K), room_.pi.resize(K);
    hashed_->scores(scored_row_.indices.data(), scored_row_.values.data(), scored_row_.size(), room_.raw.data(), hashed_room_);
    room_.scores = room_.raw;
    acting_row(room_.scores.data(), M, K, K, Acting(acting_.data(), M), room_.pi.data());
    action.index = draw_one(room_.pi.data(), K, uniform);
    propensity = room_.pi[action.index];
    return true;
  }

  // Whether a decision keeps this context, which becomes the row, and its number. A row of numbers is in given_.
  bool is_of(const nanobind::object& kept, nanobind::handle context, int64_t& number) {
    if (!hashed_) {
      const bool same = read_kept(kept, number) && row_ == given_;
      row_ = given_;
      return same;
    }
    if (!PyTuple_CheckExact(kept.ptr()) || PyTuple_GET_SIZE(kept.ptr()) != 3) return false;
    PyObject* own = PyTuple_GET_ITEM(kept.ptr(), 1);
    if (!PyDict_CheckExact(own) || !PyDict_CheckExact(context.ptr()) || !same_dictionaries(own, context.ptr())) return false;
    number = PyLong_AsLongLong(PyTuple_GET_ITEM(kept.ptr(), 0));
    return words_.read(context, words_row_);
  }

  static std::pair<double, double> as_pair(const DrawnNumber& drawn) { return {drawn.action, drawn.density}; }

  // A propensity that needs no closer look; densities may be above 1.
  bool likely(double propensity, double least) const {
    return how_.real() ? propensity >= DBL_MIN && propensity <= DBL_MAX : propensity > 0 && propensity >= least && propensity <= 1;
  }

  bool free() { return busy == 0 && log().has_room() && decides() && log().sparse() == (hashed_ != nullptr); }
  bool has_room_for_row() { return !hashed_ || log().has_room_for(words_row_.size()); }

  int append(const Played& action, double reward, double propensity, int64_t number) {
    if (number == scored_ && !how_.real() && (!hashed_ || words_row_ == scored_row_)) predict(log().n, action.index);
    if (hashed_) log().append(words_row_.indices.data(), words_row_.values.data(), words_row_.size(), action, reward, propensity, number);
    else log().append(row_.data(), action, reward, propensity, number);
    return log().n >= checkpoint ? DUE : DONE;
  }

  nanobind::object decided(const Played& action, double propensity) {
    auto* type = reinterpret_cast<PyTypeObject*>(type_.ptr());
    nanobind::object made = nanobind::steal(type->tp_alloc(type, 2));
    if (!made.is_valid()) nanobind::raise_python_error();
    PyObject* first = how_.real()         ? PyFloat_FromDouble(action.number)
                      : names_.is_none() ? PyLong_FromLongLong(action.index)
                                           : Py_NewRef(PyTuple_GET_ITEM(names_.ptr(), action.index));
    PyTuple_SET_ITEM(made.ptr(), 0, first);
    PyTuple_SET_ITEM(made.ptr(), 1, PyFloat_FromDouble(propensity));
    return made;
  }

  // The context of a decision to row_, and its number; false: it is not a row of this log.
  bool read_kept(const nanobind::object& kept, int64_t& number) {
    if (!PyTuple_CheckExact(kept.ptr()) || PyTuple_GET_SIZE(kept.ptr()) != 3) return false;
    PyObject *bytes = PyTuple_GET_ITEM(kept.ptr(), 1), *kind = PyTuple_GET_ITEM(kept.ptr(), 2);
    number = -1;
    if (hashed_) {
      if (kind == Py_None && words_.read(bytes, words_row_)) number = PyLong_AsLongLong(PyTuple_GET_ITEM(kept.ptr(), 0));
      return number >= 0;
    }
    if (!PyBytes_CheckExact(bytes) || !PyArray_DescrCheck(kind)) return false;
    const char letter = reinterpret_cast<PyArray_Descr*>(kind)->type;
    const auto width = static_cast<Py_ssize_t>(log().width());
    const char* from = PyBytes_AS_STRING(bytes);
    row_.resize(width);
    if (letter == 'f' && PyBytes_GET_SIZE(bytes) == width * 4) {
      std::memcpy(row_.data(), from, width * 4);
    } else if (letter == 'd' && PyBytes_GET_SIZE(bytes) == width * 8) {
      for (Py_ssize_t i = 0; i < width; i++) {
        double x;
        std::memcpy(&x, from + 8 * i, 8);
        row_[i] = static_cast<float>(x);
      }
    } else {
      return false;
    }
    number = PyLong_AsLongLong(PyTuple_GET_ITEM(kept.ptr(), 0));
    return number >= 0;
  }

  // A plain float, or a plain integer that is not a bool, or NumPy's double.
  static bool number_of(nanobind::handle given, double& number) {
    PyObject* o = given.ptr();
    if (PyFloat_Check(o)) {  // NumPy's double too
      number = PyFloat_AS_DOUBLE(o);
      return true;
    }
    if (!PyLong_CheckExact(o)) return false;
    number = PyLong_AsDouble(o);
    if (number == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    return true;
  }

  bool played(PyObject* action, Played& found) {
    if (log().real() != how_.real()) return false;
    if (!how_.real()) return index_of(action, found.index);
    if (!PyFloat_CheckExact(action)) return false;
    found.number = PyFloat_AS_DOUBLE(action);
    const bool inside = how_.kind == Drawing::Kind::normal || (how_.bounds.low < found.number && found.number < how_.bounds.high);
    return inside && std::isfinite(found.number);
  }

  bool index_of(PyObject* action, int64_t& index) {
    if (names_.is_none()) {
      if (!PyLong_CheckExact(action)) return false;
      index = PyLong_AsLongLong(action);
      if (index == -1 && PyErr_Occurred()) PyErr_Clear();
    } else {
      if (!PyUnicode_CheckExact(action)) return false;
      index = -1;
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names_.ptr()); i++) {
        PyObject* name = PyTuple_GET_ITEM(names_.ptr(), i);
        if (name == action || PyUnicode_Compare(name, action) == 0) {
          index = i;
          break;
        }
      }
    }
    return index >= 0 && index < n_actions();
  }
};

}  // namespace o2
