#include "python/rounds.hpp"

#include "python/module.hpp"

namespace nb = nanobind;
using o2::CompiledLearner, o2::LogColumns, o2::NewArray, o2::Pending, o2::Rounds, o2::Uniforms;

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
      .def("attach", &LogColumns::attach, nb::arg("contexts"), nb::arg("sets").none(), nb::arg("actions"), nb::arg("rewards"),
           nb::arg("propensities"), nb::arg("ids"),
           nb::sig("def attach(self, contexts: tuple[numpy.typing.NDArray[typing.Any], ...], sets: numpy.typing.NDArray[numpy.int64] | "
                   "None, actions: numpy.typing.NDArray[typing.Any], rewards: numpy.typing.NDArray[typing.Any], propensities: "
                   "numpy.typing.NDArray[typing.Any], ids: numpy.typing.NDArray[typing.Any]) -> None"),
           "Append to these buffers from now on. contexts: an array of rows, or indices, values and offsets of sparse ones;\n"
           "sets: the first row of each action set, or None.")
      .def("detach", &LogColumns::detach, "Append nothing any more.");
  nb::class_<Rounds>(m, "Rounds", "Decisions and rewards between two times of learning, for numeric rows and dictionaries.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object, std::pair<double, double>, bool>(),
           nb::arg("decision_type"), nb::arg("uniforms"), nb::arg("pending"), nb::arg("columns"), nb::arg("rewards"),
           nb::arg("sets"))
      .def_rw("checkpoint", &Rounds::checkpoint, "Number of rows at which to learn.")
      .def_rw("looks", &Rounds::looks, "Whether new rows may be looked at here, between two times of learning.")
      .def_rw("busy", &Rounds::busy)
      .def("read_as", &Rounds::read_as, nb::arg("reader"), nb::arg("names"), nb::arg("mask"), nb::arg("signed"),
           nb::sig("def read_as(self, reader: typing.Any, names: FeatureNames, mask: int, signed: bool) -> None"),
           "Read contexts as this `DictionaryReader` does, if they are dictionaries of plain values and it has no schema.")
      .def("decide_by", &Rounds::decide_by, nb::arg("packed").none(), nb::arg("acting").none(), nb::arg("names").none())
      .def("decide_as", &Rounds::decide_as, nb::arg("learner"), "Decide as a compiled learner acts now; checkpoint is its.")
      .def("decide_within", &Rounds::decide_within, nb::arg("packed"), nb::arg("acting"), nb::arg("numbers"))
      .def("decide_normal", &Rounds::decide_normal, nb::arg("packed"), nb::arg("centre"), nb::arg("scale"))
      .def("sample", &Rounds::sample, nb::arg("contexts"), nb::arg("uniforms"),
           nb::sig("def sample(self, contexts: numpy.typing.NDArray[numpy.float32], uniforms: numpy.typing.NDArray[numpy.floating[typing.Any]]) -> "
                   "tuple[numpy.typing.NDArray[typing.Any], numpy.typing.NDArray[numpy.float64]]"),
           "Draw one action for each of the next rows of the log. Returns actions and propensities.")
      .def("act", nb::overload_cast<nb::handle>(&Rounds::act), nb::arg("context").none(),
           nb::sig("def act(self, context: typing.Any) -> typing.Any"),
           "Return a decision; None if the context is no plain row, no plain dictionary, or no set of them.")
      .def("update", &Rounds::update, nb::arg("decision").none(), nb::arg("reward").none(),
           "Append the row of a decision: -1 if it is left to the engine, 1 if it is time to learn, else 0.")
      .def("tell", &Rounds::tell, nb::arg("context").none(), nb::arg("action").none(), nb::arg("reward").none(),
           nb::arg("propensity").none(),
           "Like `update`, from the parts of the newest decision.");
}
