// One call per decision, and one per reward: what an engine does between two times of learning, for numeric rows and
// actions by index or real-valued. Whatever is unusual is left to the engine: then `act` returns None, `update` and `tell` Outcome::LEFT.
#include <nanobind/stl/pair.h>

#include <cfloat>
#include <cmath>
#include <utility>

#include "core/normal.hpp"
#include "python/columns.hpp"
#include "python/learners.hpp"
#include "python/module.hpp"
#include "python/packed.hpp"
#include "python/pending.hpp"
#include "python/uniforms.hpp"

namespace nb = nanobind;
using o2::Array, o2::CompiledLearner, o2::LogColumns, o2::NewArray, o2::Packed, o2::Pending, o2::Played, o2::Uniforms;

namespace {

enum Outcome { LEFT = -1, DONE = 0, DUE = 1 };  // DUE: a row was appended, and it is time to learn

class Rounds {
 public:
  // decision_type: `Decision`, a tuple with an attribute `kept`; count: its `next()` gives the number of a new one.
  Rounds(nb::object decision_type, nb::object count, nb::object uniforms, nb::object pending, nb::object columns,
         std::pair<double, double> rewards)
      : type_(std::move(decision_type)), count_(std::move(count)), uniforms_(std::move(uniforms)),
        pending_(std::move(pending)), columns_(std::move(columns)), kept_(nb::steal(PyUnicode_InternFromString("kept"))),
        next_(nb::steal(PyUnicode_InternFromString("next"))), lowest_(rewards.first), highest_(rewards.second) {}

  int64_t checkpoint = 0;  // number of rows at which to learn
  int64_t busy = 0;        // somebody holds the engine's lock: rows are left to the engine, which waits for it

  // By index; or, with packed None, all is left to the engine.
  void decide_by(nb::handle packed, nb::handle acting, nb::object names) {
    decide_with(packed, acting);
    names_ = std::move(names), kind_ = Kind::index;
  }

  // By index, as a compiled learner acts now. Names stay.
  void decide_as(nb::object learner) {
    const auto& own = nb::cast<const CompiledLearner&>(learner);
    scorer_ = own.scorer(), acting_ = own.acting(), kind_ = Kind::index, checkpoint = own.checkpoint();
    learner_ = std::move(learner), scored_ = -1;
  }

  // Within bounds, in cells. numbers: those of `Cells`
  void decide_within(nb::handle packed, nb::handle acting, Array<const double> numbers) {
    o2::expect(numbers.size() == 3, "numbers: expected low, high, and log(high / low) or 0");
    decide_with(packed, acting);
    names_ = nb::none(), kind_ = Kind::within;
    bounds_ = o2::Bounds::of(numbers.data);
  }

  // From a normal distribution whose mean is the centre plus the score.
  void decide_normal(nb::handle packed, double centre, double scale) {
    decide_with(packed, nb::none());
    names_ = nb::none(), kind_ = Kind::normal;
    centre_ = centre, scale_ = scale;
  }

  nb::object act(nb::handle context) {
    if (!scorer_) return nb::none();
    Played action;
    double propensity;
    if (!draw(context, action, propensity)) return nb::none();
    const nb::object number = nb::steal(PyObject_CallMethodNoArgs(count_.ptr(), next_.ptr()));
    if (!number.is_valid()) nb::raise_python_error();
    auto* array = reinterpret_cast<PyArrayObject*>(context.ptr());
    nb::object bytes = nb::steal(PyBytes_FromStringAndSize(static_cast<const char*>(PyArray_DATA(array)), PyArray_NBYTES(array)));
    nb::object decision = decided(action, propensity);
    const nb::object kept = nb::steal(PyTuple_Pack(3, number.ptr(), bytes.ptr(), reinterpret_cast<PyObject*>(PyArray_DESCR(array))));
    if (!kept.is_valid() || PyObject_SetAttr(decision.ptr(), kept_.ptr(), kept.ptr()) < 0) nb::raise_python_error();
    scored_ = PyLong_AsLongLong(number.ptr());
    waiting().keep(scored_, decision);
    return decision;
  }

  // One action by index for each of the next rows of the log, [n].
  nb::tuple sample(Array<const float, 2> contexts, Array<const double> uniforms) {
    const auto [n, d] = contexts.shape;
    o2::expect(scorer_ && kind_ == Kind::index && d == scorer_->inputs() && uniforms.size() == n, "sample: found rows of another width");
    NewArray<int64_t> actions({n});
    NewArray<double> propensities({n});
    const o2::Acting acting(acting_.data(), scorer_->members());
    const int64_t row = log().n;
    scored_ = -1;
    for (int64_t r = 0; r < n; r++) {
      scorer_->policy(contexts.data + r * d, 1, acting, room_);
      actions.view[r] = o2::draw_one(room_.pi.data(), static_cast<int64_t>(room_.pi.size()), uniforms[r]);
      propensities.view[r] = room_.pi[actions.view[r]];
      if (learner_.is_valid()) nb::inst_ptr<CompiledLearner>(learner_)->predicted(row + r, room_.raw.data(), actions.view[r]);
    }
    return nb::make_tuple(actions.object, propensities.object);
  }

  // The reward of a decision that waits for it.
  int update(nb::handle decision, nb::handle given) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(decision.ptr())) != type_.ptr() || !free()) return LEFT;
    double reward;
    if (!number_of(given, reward) || !(reward >= lowest_ && reward <= highest_)) return LEFT;
    const nb::object kept = nb::steal(PyObject_GetAttr(decision.ptr(), kept_.ptr()));
    if (!kept.is_valid()) nb::raise_python_error();
    int64_t number;
    if (!read_kept(kept, number)) return LEFT;
    Played action;
    const double propensity = PyFloat_AsDouble(PyTuple_GET_ITEM(decision.ptr(), 1));
    if (!played(PyTuple_GET_ITEM(decision.ptr(), 0), action) || !likely(propensity, 0)) return LEFT;
    if (!waiting().drop(number)) return LEFT;  // told already, or of another learner
    return append(action, reward, propensity, number);
  }

  // The four parts. They are the newest decision's if it has the same context, action and propensity.
  int tell(nb::handle context, nb::handle taken, nb::handle given, nb::handle drawn) {
    double reward, propensity;
    Played action;
    int64_t n = 1;
    if (!free() || !number_of(given, reward) || !number_of(drawn, propensity) || !played(taken.ptr(), action)) return LEFT;
    if (!(reward >= lowest_ && reward <= highest_) || !likely(propensity, LEAST)) return LEFT;
    if (!o2::read_rows(context, 1, log().width(), given_, n)) return LEFT;
    const nb::object newest = waiting().newest();
    int64_t number = -1;
    if (!newest.is_none() && reinterpret_cast<PyObject*>(Py_TYPE(newest.ptr())) == type_.ptr()) {
      Played its_action;
      const nb::object kept = nb::steal(PyObject_GetAttr(newest.ptr(), kept_.ptr()));
      const bool same = PyFloat_AsDouble(PyTuple_GET_ITEM(newest.ptr(), 1)) == propensity &&
                        played(PyTuple_GET_ITEM(newest.ptr(), 0), its_action) && its_action == action &&
                        kept.is_valid() && read_kept(kept, number) && row_ == given_;
      if (!same) number = -1;
    }
    if (number < 0) return LEFT;
    waiting().drop(number);
    row_ = given_;
    return append(action, reward, propensity, number);
  }

 private:
  static constexpr double LEAST = 1e-12;  // smaller propensities are left to the engine, which knows its limit
  enum class Kind { index, within, normal };
  nb::object type_, count_, uniforms_, pending_, columns_, kept_, next_, names_;
  std::shared_ptr<const o2::Scorer> scorer_;  // null: all is left to the engine
  std::vector<double> acting_;                // `acting_numbers`
  o2::ScoringRoom room_;
  std::vector<float> inputs_;
  nb::object learner_;           // the compiled learner that acts, if one does
  int64_t scored_ = -1;          // number of the decision whose scores are in room_.raw; -1: none
  double lowest_, highest_, centre_ = 0, scale_ = 1;
  Kind kind_ = Kind::index;
  o2::Bounds bounds_{};
  std::vector<float> row_, given_;

  Uniforms& stream() { return *nb::inst_ptr<Uniforms>(uniforms_); }
  Pending& waiting() { return *nb::inst_ptr<Pending>(pending_); }
  LogColumns& log() { return *nb::inst_ptr<LogColumns>(columns_); }
  // The uniform number comes first: fetching it may run Python, and other decisions would use the same work arrays.
  bool draw(nb::handle context, Played& action, double& propensity) {
    const double uniform = stream().next();
    if (drawn_from(context, uniform, action, propensity)) return true;
    stream().give_back(uniform);
    return false;
  }

  void decide_with(nb::handle packed, nb::handle acting) {
    scorer_ = packed.is_none() ? nullptr : nb::inst_ptr<Packed>(packed)->scorer;
    acting_ = acting.is_none() ? std::vector<double>() : o2::KeptArray<double>(acting).copied();
    learner_.reset(), scored_ = -1;
  }

  bool drawn_from(nb::handle context, double uniform, Played& action, double& propensity) {
    int64_t n = 1;
    if (!scorer_ || !o2::read_rows(context, 1, scorer_->inputs(), inputs_, n)) return false;
    if (kind_ == Kind::normal) {
      room_.scores.resize(scorer_->members() * scorer_->n_actions());
      scorer_->scores(inputs_.data(), room_.scores.data(), scorer_->n_actions(), room_);
      std::tie(action.number, propensity) = as_pair(o2::draw_normal(centre_ + room_.scores[0], scale_, uniform));
      return true;
    }
    scorer_->policy(inputs_.data(), 1, o2::Acting(acting_.data(), scorer_->members()), room_);
    const std::vector<double>& pi = room_.pi;
    const auto K = static_cast<int64_t>(pi.size());
    if (kind_ == Kind::within) {
      std::tie(action.number, propensity) = as_pair(o2::draw_number(pi.data(), K, uniform, bounds_));
    } else {
      action.index = o2::draw_one(pi.data(), K, uniform);
      propensity = pi[action.index];
    }
    return true;
  }

  static std::pair<double, double> as_pair(const o2::DrawnNumber& drawn) { return {drawn.action, drawn.density}; }

  // A propensity that needs no closer look; densities may be above 1.
  bool likely(double propensity, double least) const {
    return kind_ == Kind::index ? propensity > 0 && propensity >= least && propensity <= 1 : propensity >= DBL_MIN && propensity <= DBL_MAX;
  }

  bool free() { return busy == 0 && log().has_room() && scorer_; }

  int append(const Played& action, double reward, double propensity, int64_t number) {
    if (number == scored_ && learner_.is_valid())
      nb::inst_ptr<CompiledLearner>(learner_)->predicted(log().n, room_.raw.data(), action.index);
    log().append(row_.data(), action, reward, propensity, number);
    return log().n >= checkpoint ? DUE : DONE;
  }

  nb::object decided(const Played& action, double propensity) {
    auto* type = reinterpret_cast<PyTypeObject*>(type_.ptr());
    nb::object made = nb::steal(type->tp_alloc(type, 2));
    if (!made.is_valid()) nb::raise_python_error();
    PyObject* first = kind_ != Kind::index ? PyFloat_FromDouble(action.number)
                      : names_.is_none()   ? PyLong_FromLongLong(action.index)
                                           : Py_NewRef(PyTuple_GET_ITEM(names_.ptr(), action.index));
    PyTuple_SET_ITEM(made.ptr(), 0, first);
    PyTuple_SET_ITEM(made.ptr(), 1, PyFloat_FromDouble(propensity));
    return made;
  }

  // The context of a decision to row_, and its number; false: it is not a row of this log.
  bool read_kept(const nb::object& kept, int64_t& number) {
    if (!PyTuple_CheckExact(kept.ptr()) || PyTuple_GET_SIZE(kept.ptr()) != 3) return false;
    PyObject *bytes = PyTuple_GET_ITEM(kept.ptr(), 1), *kind = PyTuple_GET_ITEM(kept.ptr(), 2);
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
  static bool number_of(nb::handle given, double& number) {
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
    if (log().real() != (kind_ != Kind::index)) return false;
    if (kind_ == Kind::index) return index_of(action, found.index);
    if (!PyFloat_CheckExact(action)) return false;
    found.number = PyFloat_AS_DOUBLE(action);
    const bool inside = kind_ == Kind::normal || (bounds_.low < found.number && found.number < bounds_.high);
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
    return index >= 0 && index < scorer_->n_actions();
  }
};

}  // namespace

void bind_rounds(nb::module_& m) {
  nb::class_<Uniforms>(m, "Uniforms", "Uniform numbers of a NumPy generator, drawn ahead.")
      .def(nb::init<nb::object>(), nb::arg("generator"))
      .def("next", &Uniforms::next)
      .def("give_back", &Uniforms::give_back, nb::arg("number"), "Return an unused number to the stream.")
      .def("refill", &Uniforms::refill)
      .def("skip", &Uniforms::skip, nb::arg("used"))
      .def("take", [](Uniforms& self, int64_t n) {
        o2::NewArray<double> made({n});
        for (int64_t i = 0; i < n; i++) made.view[i] = self.next();
        return made;
      }, nb::arg("n"), "Return the next n numbers.")
      .def_prop_ro("left", &Uniforms::left, "Numbers that are drawn already")
      .def_prop_ro("before", [](const Uniforms& self) { return self.before(); })
      .def_prop_ro("position", &Uniforms::position);
  nb::class_<Pending>(m, "PendingDecisions", "Decisions that wait for their reward, by number.")
      .def(nb::init<int64_t>(), nb::arg("limit"))
      .def("keep", &Pending::keep, nb::arg("number"), nb::arg("decision"))
      .def("get", &Pending::get, nb::arg("number"), nb::sig("def get(self, number: int) -> typing.Any"), "Return the decision, or None.")
      .def("drop", &Pending::drop, nb::arg("number"), "Remove a decision. Returns whether it was there.")
      .def("newest", &Pending::newest, nb::sig("def newest(self) -> typing.Any"), "Return the newest decision, if it still waits; else None.")
      .def("decisions", &Pending::decisions, nb::sig("def decisions(self) -> list[typing.Any]"), "Return the decisions, from old to new.")
      .def("__len__", &Pending::size);
  nb::class_<LogColumns>(m, "LogColumns", "The number of rows of a log, and its columns where they are numeric.")
      .def(nb::init<>())
      .def_rw("n", &LogColumns::n)
      .def("attach", &LogColumns::attach, nb::arg("values"), nb::arg("actions"), nb::arg("rewards"), nb::arg("propensities"),
           nb::arg("ids"), "Append to these buffers from now on.")
      .def("detach", &LogColumns::detach, "Append nothing any more.");
  nb::class_<Rounds>(m, "Rounds", "Decisions and rewards between two times of learning, for numeric rows.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, std::pair<double, double>>(),
           nb::arg("decision_type"), nb::arg("count"), nb::arg("uniforms"), nb::arg("pending"), nb::arg("columns"),
           nb::arg("rewards"))
      .def_rw("checkpoint", &Rounds::checkpoint, "Number of rows at which to learn.")
      .def_rw("busy", &Rounds::busy)
      .def("decide_by", &Rounds::decide_by, nb::arg("packed").none(), nb::arg("acting").none(), nb::arg("names").none())
      .def("decide_as", &Rounds::decide_as, nb::arg("learner"), "Decide as a compiled learner acts now; checkpoint is its.")
      .def("decide_within", &Rounds::decide_within, nb::arg("packed"), nb::arg("acting"), nb::arg("numbers"))
      .def("decide_normal", &Rounds::decide_normal, nb::arg("packed"), nb::arg("centre"), nb::arg("scale"))
      .def("sample", &Rounds::sample, nb::arg("contexts"), nb::arg("uniforms"),
           nb::sig("def sample(self, contexts: numpy.typing.NDArray[numpy.float32], uniforms: numpy.typing.NDArray[numpy.floating[typing.Any]]) -> "
                   "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]"),
           "Draw one action for each of the next rows of the log. Returns actions and propensities.")
      .def("act", &Rounds::act, nb::arg("context").none(), nb::sig("def act(self, context: typing.Any) -> typing.Any"),
           "Return a decision; None if the context is not a plain row.")
      .def("update", &Rounds::update, nb::arg("decision").none(), nb::arg("reward").none(),
           "Append the row of a decision: -1 if it is left to the engine, 1 if it is time to learn, else 0.")
      .def("tell", &Rounds::tell, nb::arg("context").none(), nb::arg("action").none(), nb::arg("reward").none(),
           nb::arg("propensity").none(),
           "Like `update`, from the parts of the newest decision.");
}
