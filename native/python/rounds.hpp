// One call per decision, and one per reward: what an engine does between two times of learning, for numeric rows and
// actions by index or real-valued, for dictionaries and actions by index, and for action sets of both. Whatever is unusual
// is left to the engine: then `act` returns None, `update` and `tell` LEFT.
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
#include "python/told.hpp"
#include "python/uniforms.hpp"
#include "python/words.hpp"

namespace o2 {

enum Told { LEFT = -1, DONE = 0, DUE = 1 };  // DUE: a row was appended, and it is time to learn

class Rounds {
 public:
  // decision_type: `Decision`, a tuple with an attribute `kept`; sets: whether contexts have their actions
  Rounds(nanobind::object decision_type, nanobind::object uniforms, nanobind::object pending, nanobind::object columns,
         std::pair<double, double> rewards, bool sets)
      : type_(std::move(decision_type)), uniforms_(std::move(uniforms)), pending_(std::move(pending)), columns_(std::move(columns)),
        kept_(nanobind::steal(PyUnicode_InternFromString("kept"))), sets_(sets), lowest_(rewards.first), highest_(rewards.second) {}

  int64_t checkpoint = 0;  // number of rows at which to learn
  bool looks = false;      // new rows may be looked at here, between two times of learning: nobody took back what was learned
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
    uncertainty_ = own.uncertainty(), how_ = own.drawing(), checkpoint = own.checkpoint();
    learner_ = std::move(learner), scored_ = -1, looks = true;
  }

  // Lets the learner look at the new rows. False: nothing was done, and the engine is to learn.
  bool look() {
    if (!looks || !learner_.is_valid()) return false;
    auto& own = *nanobind::inst_ptr<CompiledLearner>(learner_);
    if (!own.look()) return false;
    uncertainty_ = own.uncertainty(), checkpoint = own.checkpoint(), scored_ = -1;
    return true;
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
    Drawn drawn;
    newest_.number = -1;  // its row is overwritten
    if (!decides()) return nanobind::none();
    if (!hashed_) {
      if (!draw([&] { return scorer_ && read_numbers(context, scorer_->inputs(), inputs_); }, drawn)) return nanobind::none();
      auto* array = reinterpret_cast<PyArrayObject*>(context.ptr());
      if (sets_) return decided(drawn, nanobind::steal(PyArray_NewCopy(array, NPY_CORDER)), nanobind::none());
      return decided(drawn, nanobind::steal(PyBytes_FromStringAndSize(static_cast<const char*>(PyArray_DATA(array)), PyArray_NBYTES(array))),
                     nanobind::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(array))));
    }
    const nanobind::object copy = sets_ ? copied_list(context) : copied(context);
    if (copy.is_none() || !draw([&] { return hashed_ && read_words(copy, scored_words_); }, drawn)) return nanobind::none();
    return decided(drawn, copy, nanobind::none());
  }

  // A user, a dictionary or None, and items, dictionaries.
  nanobind::object act(nanobind::handle user, nanobind::handle items) {
    Drawn drawn;
    newest_.number = -1;
    if (!sets_ || !hashed_ || !decides()) return nanobind::none();
    if (!draw([&] { return hashed_ && words_.read_set(user, items, scored_words_); }, drawn)) return nanobind::none();
    const int64_t K = scored_words_.rows();
    return decided(drawn, Words::packed(scored_words_), nanobind::make_tuple(K, words_.width()));
  }

  // One action for each of the next rows of the log, [n].
  nanobind::tuple sample(Array<const float, 2> contexts, Array<const double> uniforms) {
    const auto [n, d] = contexts.shape;
    expect(scorer_ && !sets_ && d == scorer_->inputs() && uniforms.size() == n, "sample: found rows of another width");
    NewArray<int64_t> indices({how_.real() ? 0 : n});
    NewArray<double> numbers({how_.real() ? n : 0}), propensities({n});
    const int64_t row = log().n;
    scored_ = -1;
    for (int64_t r = 0; r < n; r++) {
      Drawn drawn;
      draw_action(contexts.data + r * d, 1, uniforms[r], drawn);
      propensities.view[r] = drawn.propensity;
      if (how_.real()) numbers.view[r] = drawn.action.number;
      else indices.view[r] = drawn.action.index, predict(row + r, drawn.action.index);
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
    if (!fits(action) || !waiting().drop(number)) return LEFT;  // told already, or of another learner
    return append(action, reward, propensity, number);
  }

  // The four parts. They are the newest decision's if it has the same context, action and propensity.
  int tell(nanobind::handle context, nanobind::handle taken, nanobind::handle given, nanobind::handle drawn) {
    double reward, propensity;
    Played action;
    if (!free() || !number_of(given, reward) || !number_of(drawn, propensity) || !played(taken.ptr(), action)) return LEFT;
    if (!(reward >= lowest_ && reward <= highest_) || !likely(propensity, LEAST)) return LEFT;
    if (!hashed_ && !read_numbers(context, log().width(), given_)) return LEFT;
    int64_t number = -1;
    if (newest_.number >= 0 && waiting().newest_number() == newest_.number) {
      const bool same = newest_.propensity == propensity && newest_.action == action && is_newest(context);
      if (!same || !fits(action)) return LEFT;
      waiting().drop(newest_.number);
      return append(action, reward, propensity, newest_.number);
    }
    const nanobind::object newest = waiting().newest();
    if (!newest.is_none() && reinterpret_cast<PyObject*>(Py_TYPE(newest.ptr())) == type_.ptr()) {
      Played its_action;
      const nanobind::object kept = nanobind::steal(PyObject_GetAttr(newest.ptr(), kept_.ptr()));
      const bool same = PyFloat_AsDouble(PyTuple_GET_ITEM(newest.ptr(), 1)) == propensity &&
                        played(PyTuple_GET_ITEM(newest.ptr(), 0), its_action) && its_action == action &&
                        kept.is_valid() && is_of(kept, context, number);
      if (!same) number = -1;
    }
    if (number < 0 || !fits(action)) return LEFT;
    waiting().drop(number);
    return append(action, reward, propensity, number);
  }

 private:
  struct Drawn {
    Played action;
    double propensity = 0;
    int64_t number = -1;  // of the decision
  };

  static constexpr double LEAST = 1e-12;  // smaller propensities are left to the engine, which knows its limit
  nanobind::object type_, uniforms_, pending_, columns_, kept_, names_;
  std::shared_ptr<const Scorer> scorer_;  // null, and so is the next one: all is left to the engine
  std::shared_ptr<const HashedScorer> hashed_;
  std::shared_ptr<const Uncertainty> uncertainty_;  // of numeric rows; null: not known
  Words words_;
  HashedRows words_row_, scored_words_;  // as given; as scored
  HashedScorer::Room hashed_room_;
  bool sets_;
  std::vector<double> acting_;                // `acting_numbers`
  ScoringRoom room_;
  std::vector<float> inputs_;
  Drawn newest_;                    // the last decision; number -1: none. Its row is in inputs_, or in scored_words_
  nanobind::object newest_context_;  // what it keeps, of dictionaries
  nanobind::object learner_;  // the compiled learner that acts, if one does
  int64_t scored_ = -1;       // number of the decision whose scores are in room_.raw; -1: none
  double lowest_, highest_;
  Drawing how_;
  std::vector<float> row_, given_;  // of the log's width; of a set, one for each action

  Uniforms& stream() { return *nanobind::inst_ptr<Uniforms>(uniforms_); }
  Pending& waiting() { return *nanobind::inst_ptr<Pending>(pending_); }
  LogColumns& log() { return *nanobind::inst_ptr<LogColumns>(columns_); }
  // Draws from the context that `read` reads; false: it could not. The uniform number comes first: fetching it may run
  // Python, other decisions would use the same work arrays, and what decides may change.
  template <class Read>
  bool draw(const Read& read, Drawn& drawn) {
    const double uniform = stream().next();
    if (!read()) {
      stream().give_back(uniform);
      return false;
    }
    if (hashed_) draw_from_words(uniform, drawn);
    else draw_action(inputs_.data(), sets_ ? static_cast<int64_t>(inputs_.size()) / scorer_->inputs() : 1, uniform, drawn);
    scored_ = drawn.number = next_number();
    return true;
  }

  // Of sets, neither bonus nor share: their number of actions varies.
  bool decides() const { return (scorer_ || hashed_) && (!sets_ || (acting_.size() > 4 && acting_[2] == 0 && acting_[3] == 0)); }

  bool read_numbers(nanobind::handle context, int64_t width, std::vector<float>& to) const {
    int64_t n = 1;
    return read_rows(context, sets_ ? 2 : 1, width, to, n) && (!sets_ || (n > 0 && width > 0));
  }
  bool read_words(nanobind::handle context, HashedRows& to) {
    return sets_ ? PyList_CheckExact(context.ptr()) && words_.read_set(nanobind::none(), context, to) : words_.read(context, to);
  }

  void decide_with(nanobind::handle packed, nanobind::handle acting) {
    hashed_ = nullptr;
    scorer_ = packed.is_none() ? nullptr : nanobind::inst_ptr<Packed>(packed)->scorer;
    uncertainty_ = packed.is_none() ? nullptr : nanobind::inst_ptr<Packed>(packed)->uncertainty;
    acting_ = acting.is_none() ? std::vector<double>() : KeptArray<double>(acting).copied();
    learner_.reset(), scored_ = -1;
  }

  // From a row, or from the rows of a set.
  void draw_action(const float* inputs, int64_t rows, double uniform, Drawn& drawn) {
    if (how_.kind == Drawing::Kind::normal) {
      room_.scores.resize(scorer_->members() * scorer_->n_actions());
      scorer_->scores(inputs, 1, room_.scores.data(), 1, 1, room_);
      std::tie(drawn.action.number, drawn.propensity) = as_pair(draw_normal(how_.centre + room_.scores[0], how_.scale, uniform));
      return;
    }
    scorer_->policy(inputs, rows, Acting(acting_.data(), scorer_->members()), uncertainty_.get(), room_);
    const std::vector<double>& pi = room_.pi;
    const auto K = static_cast<int64_t>(pi.size());
    if (how_.kind == Drawing::Kind::within) {
      std::tie(drawn.action.number, drawn.propensity) = as_pair(draw_number(pi.data(), K, uniform, how_.bounds));
    } else {
      drawn.action.index = draw_one(pi.data(), K, uniform);
      drawn.propensity = pi[drawn.action.index];
    }
  }

  // Tell the learner how its members scored a row when its action was drawn.
  void predict(int64_t row, int64_t action) {
    if (learner_.is_valid())
      nanobind::inst_ptr<CompiledLearner>(learner_)->predicted(row, room_.raw.data(), static_cast<int64_t>(room_.pi.size()), action);
  }

  void draw_from_words(double uniform, Drawn& drawn) {
    const HashedRows& own = scored_words_;
    const int64_t M = hashed_->members(), K = own.rows() * hashed_->K;  // one score of each action of a set
    room_.raw.resize(M * K), room_.pi.resize(K);
    hashed_->scores({own.indices, own.values.data(), own.ends}, room_.raw.data(), hashed_room_);
    room_.scores = room_.raw;
    const Acting acting(acting_.data(), M);
    if (uncertainty_ && sets_)
      uncertainty_->at_each(hashed_room_.slots.data(), hashed_room_.values.data(), hashed_room_.offsets.data(), own.rows(), room_.doubt);
    else if (uncertainty_)  // of one row; the constant comes first
      uncertainty_->at(hashed_room_.slots.data() + 1, hashed_room_.values.data() + 1, hashed_room_.offsets[1] - 1, room_.doubt);
    acting_row(room_.scores.data(), M, K, K, uncertainty_ ? room_.doubt.in(acting) : acting, room_.pi.data());
    drawn.action.index = draw_one(room_.pi.data(), K, uniform);
    drawn.propensity = room_.pi[drawn.action.index];
  }

  // Whether the last decision was about this context, which becomes the row. A row of numbers is in given_.
  bool is_newest(nanobind::handle context) {
    if (!hashed_) {
      row_.swap(given_);
      return row_ == inputs_;
    }
    if (!newest_context_.is_valid() || words_.has_schema()) return false;
    if (!same_parts(newest_context_.ptr(), context.ptr()))
      return are_alike(newest_context_.ptr(), context.ptr()) && read_words(context, words_row_);
    words_row_ = scored_words_;
    return true;
  }

  // Whether two contexts are dictionaries, or lists of them, and equal.
  bool are_alike(PyObject* own, PyObject* given) const {
    const bool known = sets_ ? PyList_CheckExact(own) && PyList_CheckExact(given) : PyDict_CheckExact(own) && PyDict_CheckExact(given);
    return known && same_contexts(own, given);
  }

  // Whether a decision keeps this context, which becomes the row, and its number. A row of numbers is in given_.
  bool is_of(const nanobind::object& kept, nanobind::handle context, int64_t& number) {
    if (!hashed_) {
      const bool same = read_kept(kept, number) && row_ == given_;
      row_ = given_;
      return same;
    }
    if (!PyTuple_CheckExact(kept.ptr()) || PyTuple_GET_SIZE(kept.ptr()) != 3) return false;
    if (!are_alike(PyTuple_GET_ITEM(kept.ptr(), 1), context.ptr())) return false;
    number = PyLong_AsLongLong(PyTuple_GET_ITEM(kept.ptr(), 0));
    return read_words(context, words_row_);
  }

  static std::pair<double, double> as_pair(const DrawnNumber& drawn) { return {drawn.action, drawn.density}; }

  // A propensity that needs no closer look; densities may be above 1.
  bool likely(double propensity, double least) const {
    return how_.real() ? propensity >= DBL_MIN && propensity <= DBL_MAX : propensity > 0 && propensity >= least && propensity <= 1;
  }

  bool free() { return busy == 0 && log().has_room() && decides() && log().sparse() == (hashed_ != nullptr); }

  // Whether the log has room for the row, and a set has the action.
  bool fits(const Played& action) {
    return log().has_room_for(rows_told(), words_row_.size()) && (!sets_ || action.index < rows_told());
  }
  int64_t rows_told() { return hashed_ ? words_row_.rows() : sets_ ? static_cast<int64_t>(row_.size()) / log().width() : 1; }

  int append(const Played& action, double reward, double propensity, int64_t number) {
    if (number == scored_ && !how_.real() && (!hashed_ || words_row_ == scored_words_)) predict(log().n, action.index);
    const HashedRows& own = words_row_;
    if (hashed_) log().append(own.indices.data(), own.values.data(), own.ends.data(), own.rows(), action, reward, propensity, number);
    else log().append(row_.data(), rows_told(), action, reward, propensity, number);
    return log().n >= checkpoint ? DUE : DONE;
  }

  // The decision, which waits for its reward. copy, kind: see `Decision.kept`
  nanobind::object decided(const Drawn& drawn, const nanobind::object& copy, const nanobind::object& kind) {
    if (!copy.is_valid()) nanobind::raise_python_error();
    auto* type = reinterpret_cast<PyTypeObject*>(type_.ptr());
    nanobind::object made = nanobind::steal(type->tp_alloc(type, 2));
    if (!made.is_valid()) nanobind::raise_python_error();
    PyObject* first = how_.real()         ? PyFloat_FromDouble(drawn.action.number)
                      : names_.is_none() ? PyLong_FromLongLong(drawn.action.index)
                                           : Py_NewRef(PyTuple_GET_ITEM(names_.ptr(), drawn.action.index));
    PyTuple_SET_ITEM(made.ptr(), 0, first);
    PyTuple_SET_ITEM(made.ptr(), 1, PyFloat_FromDouble(drawn.propensity));
    const nanobind::object number = nanobind::steal(PyLong_FromLongLong(drawn.number));
    const nanobind::object kept = nanobind::steal(PyTuple_Pack(3, number.ptr(), copy.ptr(), kind.ptr()));
    const nanobind::object fields = nanobind::steal(PyObject_GenericGetDict(made.ptr(), nullptr));  // faster than its attribute
    if (!kept.is_valid() || !fields.is_valid() || PyDict_SetItem(fields.ptr(), kept_.ptr(), kept.ptr()) < 0) nanobind::raise_python_error();
    waiting().keep(drawn.number, made);
    newest_ = drawn;
    if (hashed_) newest_context_ = copy;
    return made;
  }

  // The context of a decision to row_, and its number; false: it is not a row of this log.
  bool read_kept(const nanobind::object& kept, int64_t& number) {
    if (!PyTuple_CheckExact(kept.ptr()) || PyTuple_GET_SIZE(kept.ptr()) != 3) return false;
    PyObject *bytes = PyTuple_GET_ITEM(kept.ptr(), 1), *kind = PyTuple_GET_ITEM(kept.ptr(), 2);
    number = -1;
    if (hashed_ || sets_) {
      int64_t n = 1;
      const bool read = hashed_ ? kind == Py_None ? read_words(bytes, words_row_) : unpack(bytes, kind)
                                : kind == Py_None && log().width() > 0 && read_rows(bytes, 2, log().width(), row_, n) && n > 0;
      if (read) number = PyLong_AsLongLong(PyTuple_GET_ITEM(kept.ptr(), 0));
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

  // kind: the number of actions and the width
  bool unpack(PyObject* bytes, PyObject* kind) {
    if (!sets_ || !PyTuple_CheckExact(kind) || PyTuple_GET_SIZE(kind) != 2) return false;
    const int64_t K = index_of(PyTuple_GET_ITEM(kind, 0), nanobind::none());
    return index_of(PyTuple_GET_ITEM(kind, 1), nanobind::none()) == words_.width() && words_.unpack(bytes, K, words_row_);
  }

  bool played(PyObject* action, Played& found) {
    if (log().real() != how_.real()) return false;
    if (!how_.real()) {
      found.index = index_of(action, names_);
      return found.index >= 0 && (sets_ || found.index < (hashed_ ? hashed_->K : scorer_->n_actions()));  // that of a set is compared with its rows
    }
    if (!PyFloat_CheckExact(action)) return false;
    found.number = PyFloat_AS_DOUBLE(action);
    const bool inside = how_.kind == Drawing::Kind::normal || (how_.bounds.low < found.number && found.number < how_.bounds.high);
    return inside && std::isfinite(found.number);
  }
};

}  // namespace o2
