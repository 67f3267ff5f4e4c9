// One function per file of this folder: each adds its part to the extension.
#pragma once
#include <nanobind/nanobind.h>

void bind_acting(nanobind::module_& m);
void bind_dictionaries(nanobind::module_& m);
void bind_adam(nanobind::module_& m);
void bind_cells(nanobind::module_& m);
void bind_curve(nanobind::module_& m);
void bind_expanding(nanobind::module_& m);
void bind_dsjson(nanobind::module_& m);
void bind_features(nanobind::module_& m);
void bind_hashed_scores(nanobind::module_& m);
void bind_finite(nanobind::module_& m);
void bind_fourier(nanobind::module_& m);
void bind_hashing(nanobind::module_& m);
void bind_json_sets(nanobind::module_& m);
void bind_deciding(nanobind::module_& m);
void bind_dense(nanobind::module_& m);
void bind_learner(nanobind::module_& m);
void bind_levels(nanobind::module_& m);
void bind_minimise(nanobind::module_& m);
void bind_objectives(nanobind::module_& m);
void bind_perceptron(nanobind::module_& m);
void bind_ridge(nanobind::module_& m);
void bind_special(nanobind::module_& m);
void bind_theory(nanobind::module_& m);
void bind_offers(nanobind::module_& m);
void bind_sparse(nanobind::module_& m);
void bind_vw_text(nanobind::module_& m);
void bind_uncertainty(nanobind::module_& m);
void bind_one_call(nanobind::module_& m);
void bind_numbers(nanobind::module_& m);
void bind_outcome(nanobind::module_& m);
void bind_rounds(nanobind::module_& m);
