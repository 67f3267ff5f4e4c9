// The objective of a linear softmax on sparse rows and its gradient, by hand for this machine: the work of
// o2pl.kernels.sparse without a control variate, on one thread.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int LANES = 8;
typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t Integers __attribute__((vector_size(4 * LANES)));

Vector load(const float *from) { Vector v; std::memcpy(&v, from, sizeof v); return v; }
void store(float *to, Vector v) { std::memcpy(to, &v, sizeof v); }

inline Vector exponential(Vector x) {  // x <= 0; relative error 1e-7
    x = x > -87.0f ? x : Vector{} - 87.0f;
    Integers k = __builtin_convertvector(x * 1.44269504f - 0.5f, Integers);
    Vector whole = __builtin_convertvector(k, Vector), r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    Vector p = Vector{} + 1.0f / 5040;
    p = p * r + 1.0f / 720; p = p * r + 1.0f / 120; p = p * r + 1.0f / 24; p = p * r + 1.0f / 6; p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    return p * reinterpret_cast<Vector>((k + 127) << 23);
}

}

extern "C" {

// W and gradient [slots, K]; slot 0 is the constant. Row s: values[offsets[s]] ... at slots[offsets[s]] ...
// penalty: alpha, t, log 1/delta, scale (p = 0).
double sparse_objective(const float *W, int64_t n_slots, int K, const int32_t *slots, const float *values,
                        const int64_t *offsets, int64_t n, const int32_t *actions, const float *residuals,
                        const float *inverse, const double *penalty, double shrink, float *gradient) {
    const int groups = (K + LANES - 1) / LANES, L = groups * LANES;
    std::vector<float> padded(n_slots * L), G(n_slots * L), P(n * L), weights(n);
    for (int64_t i = 0; i < n_slots; i++) std::copy(W + i * K, W + (i + 1) * K, padded.data() + i * L);
    for (int k = K; k < L; k++) padded[k] = -1e30f;
    const float alpha = static_cast<float>(penalty[0]);
    double risk = 0, variance = 0;
    for (int64_t r = 0; r < n; r++) {
        float *row = P.data() + r * L;
        for (int g = 0; g < groups; g++) {
            Vector even = load(padded.data() + g * LANES), odd = {};
            const float *from = padded.data() + g * LANES;
            int64_t j = offsets[r];
            for (; j + 1 < offsets[r + 1]; j += 2) {
                even += values[j] * load(from + static_cast<int64_t>(slots[j]) * L);
                odd += values[j + 1] * load(from + static_cast<int64_t>(slots[j + 1]) * L);
            }
            if (j < offsets[r + 1]) even += values[j] * load(from + static_cast<int64_t>(slots[j]) * L);
            store(row + g * LANES, even + odd);
        }
        float top = *std::max_element(row, row + L), total = 0;
        for (int g = 0; g < groups; g++) {
            Vector e = exponential(load(row + g * LANES) - top);
            for (int k = 0; k < LANES; k++) total += e[k];
            store(row + g * LANES, e);
        }
        for (int k = 0; k < K; k++) row[k] /= total;
        for (int k = K; k < L; k++) row[k] = 0;
        float w = row[actions[r]] * inverse[r], centred = std::min(w, alpha) - 1;
        weights[r] = w;
        risk += centred * residuals[r], variance += centred * centred;
    }
    risk /= n, variance /= n;
    double sigma = std::max(std::sqrt(variance), 1e-9), root = std::sqrt(1 + std::log1p(1 / sigma));
    double root_t = std::sqrt(penalty[1]), root_log = std::sqrt(penalty[2]);
    double pessimism = penalty[3] * (penalty[0] / penalty[1] + sigma * (root + root_log) / root_t +
                                     penalty[0] * penalty[2] / penalty[1]);
    float slope = penalty[3] * (root - 0.5 / (root * (1 + sigma)) + root_log) / root_t / (2 * sigma);
    std::vector<double> constant(L);
    for (int64_t r = 0; r < n; r++) {
        float w = weights[r];
        if (w >= alpha) continue;
        float c = w * (residuals[r] + 2 * slope * (w - 1)) / n, *row = P.data() + r * L;
        for (int k = 0; k < L; k++) row[k] *= -c;
        row[actions[r]] += c;
        for (int k = 0; k < L; k++) constant[k] += row[k];
        for (int g = 0; g < groups; g++) {
            Vector d = load(row + g * LANES);
            float *to = G.data() + g * LANES;
            for (int64_t j = offsets[r]; j < offsets[r + 1]; j++) {
                float *at = to + static_cast<int64_t>(slots[j]) * L;
                store(at, load(at) + values[j] * d);
            }
        }
    }
    for (int k = 0; k < K; k++) G[k] = constant[k];
    double size = 0;
    for (int64_t i = 0; i < n_slots; i++)
        for (int k = 0; k < K; k++) {
            float w = W[i * K + k];
            gradient[i * K + k] = G[i * L + k] + static_cast<float>(shrink) * w;
            size += static_cast<double>(w) * w;
        }
    return risk + pessimism + 0.5 * shrink * size;
}

}
