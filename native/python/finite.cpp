#include "core/finite.hpp"

#include <nanobind/stl/optional.h>

#include "core/vector_kernels.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::ClassSums, o2::NewArray;

namespace {

// `coming`: pairs for which the heap must have room
ClassSums sums_of(Array<double, 2> sums, Array<double, 2> heap, Array<int64_t> counts, int64_t coming) {
  o2::expect(sums.shape[0] == 5, "sums: expected five rows");
  o2::expect(heap.shape[1] == 3, "heap: expected three columns");
  o2::expect(counts.size() == 2 && counts[1] >= 0 && coming <= heap.shape[0] - counts[1],
             "counts, heap: expected room for all pairs that may be clipped");
  for (int64_t i = 0; i < counts[1]; i++)
    o2::expect(0 <= heap[3 * i + 1] && heap[3 * i + 1] < static_cast<double>(sums.shape[1]), "heap: expected members of the class");
  return {sums.data, sums.shape[1], reinterpret_cast<o2::Clipped*>(heap.data), counts.data};
}

o2::Acting acting_of(Array<const double> acting, int64_t K) {
  constexpr int64_t HEAD = 4;  // then the weight of one member, the bonus and the share
  const auto fits = [&](int64_t i) { return acting[i] == 0 || acting[i] == static_cast<double>(K); };
  o2::expect(acting.size() >= HEAD && fits(2) && fits(3) && static_cast<double>(acting.size()) >= HEAD + 1 + acting[2] + acting[3],
             "acting: expected the numbers of one member's acting policy");
  return o2::Acting(acting.data, 1);
}

void check_numbers(Array<const double> numbers) {
  o2::expect(numbers.size() == o2::PESSIMISTIC_NUMBERS, "numbers: expected those of the objective");
}

double add_rows(Array<double, 2> sums, Array<double, 2> heap, Array<int64_t> counts, Array<const double, 2> L,
                Array<const double> losses, Array<const double> propensities, Array<const double> numbers, double total,
                std::optional<Array<int64_t>> members) {
  const auto [n, J] = L.shape;
  const ClassSums own = sums_of(sums, heap, counts, L.size());
  o2::expect(J == own.J && losses.size() == n && propensities.size() == n && (!members || members->size() == n),
             "L, losses, propensities: expected one row each, and a column per member");
  check_numbers(numbers);
  nb::gil_scoped_release release;
  return o2::add_rows(own, L.data, losses.data, propensities.data, n, numbers.data, total, members ? members->data : nullptr);
}

NewArray<double> log_of(Array<const double> x) {
  NewArray<double> out({x.size()});
  for (int64_t i = 0; i < x.size(); i++) out.view[i] = o2::log_of(x[i]);
  return out;
}

NewArray<double> class_values(Array<double, 2> sums, double n, double baseline, double alpha, double t, double log_inv_delta,
                              double p, double scale) {
  o2::expect(sums.shape[0] == 5, "sums: expected five rows");
  int64_t counts[] = {static_cast<int64_t>(n), 0};
  NewArray<double> out({sums.shape[1]});
  o2::vector_kernels().class_values({sums.data, sums.shape[1], nullptr, counts}, baseline, {alpha, t, log_inv_delta, p, scale}, out.view.data);
  return out;
}

double finite_rounds(Array<const double, 3> L, Array<const double, 2> losses, Array<const double> uniforms, Array<double> params,
                     Array<const double> acting, int64_t warm_start, Array<double, 2> sums, Array<double, 2> heap,
                     Array<int64_t> counts, double total, Array<const double> numbers, Array<int64_t> actions,
                     Array<double> propensities) {
  const auto [m, K, J] = L.shape;
  const ClassSums own = sums_of(sums, heap, counts, m * J);
  o2::expect(J == own.J && params.size() == J, "L, params: expected one entry per member");
  o2::expect(losses.shape == std::array<int64_t, 2>{m, K} && uniforms.size() == m && actions.size() == m &&
                 propensities.size() == m && K > 0,
             "losses, uniforms, actions, propensities: expected one row per round");
  check_numbers(numbers);
  const o2::Acting how = acting_of(acting, K);
  nb::gil_scoped_release release;
  return o2::finite_rounds(own, {m, K, L.data, losses.data, uniforms.data, warm_start, actions.data, propensities.data}, params.data,
                           how, numbers.data, total);
}

}  // namespace

void bind_finite(nb::module_& m) {
  m.def("log_of", &log_of, nb::arg("x"), "Return log x, with the same bits on every machine; log 0 = -∞. [n]");
  m.def("add_rows", &add_rows, nb::arg("sums"), nb::arg("heap"), nb::arg("counts"), nb::arg("L"), nb::arg("losses"),
        nb::arg("propensities"), nb::arg("numbers"), nb::arg("total"), nb::arg("members").none() = nb::none(),
        "Add rows to the sums of a finite class, in place. L [n, J]; members [n]: gets the best member after each row.\n"
        "Returns Σ losses.");
  m.def("class_values", &class_values, nb::arg("sums"), nb::arg("n"), nb::arg("baseline"), nb::arg("alpha"), nb::arg("t"),
        nb::arg("log_inv_delta"), nb::arg("p"), nb::arg("scale"), "Return V_j of every member. [J]");
  m.def("finite_rounds", &finite_rounds, nb::arg("L"), nb::arg("losses"), nb::arg("uniforms"), nb::arg("params"),
        nb::arg("acting"), nb::arg("warm_start"), nb::arg("sums"), nb::arg("heap"), nb::arg("counts"), nb::arg("total"),
        nb::arg("numbers"), nb::arg("actions"), nb::arg("propensities"),
        "Simulate rounds: decide, add the row, take the best member. Returns Σ losses.\n"
        "L [m, K, J]: every action under every member; losses [m, K]; params [J], the members' log weights, are overwritten.");
}
