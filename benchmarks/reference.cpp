// The limit that the bench measures against: the pessimistic objective of a linear softmax with its gradient for a whole
// log, by hand for this machine. It does the work of `pessimistic` in native/core/dense.inl for p = 0.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

#ifdef __AVX512F__
constexpr int LANES = 16, ACTIONS_AT_ONCE = 5;
#else
constexpr int LANES = 8, ACTIONS_AT_ONCE = 3;
#endif
constexpr int FEATURES_AT_ONCE = 4;
constexpr int BLOCK = 512;  // rows whose probabilities stay in the first cache

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef int32_t Integers __attribute__((vector_size(4 * LANES)));
typedef float Eight __attribute__((vector_size(32)));
typedef float Four __attribute__((vector_size(16)));

Vector load(const float *from) { Vector v; std::memcpy(&v, from, sizeof v); return v; }
Integers load(const int32_t *from) { Integers v; std::memcpy(&v, from, sizeof v); return v; }
void store(float *to, Vector v) { std::memcpy(to, &v, sizeof v); }
void in_register(Vector &v) {  // else every product loads it anew
#if defined(__GNUC__) && defined(__AVX__)
    __asm__("" : "+v"(v));
#endif
}
int padded(int n) { return (n + LANES - 1) / LANES * LANES; }

struct Buffer {  // zeros, on a cache line's boundary
    struct alignas(64) Line { float entries[16]; };
    std::vector<Line> lines;

    void zeros(size_t n) { lines.assign((n + 15) / 16, Line{}); }
    float *data() { return reinterpret_cast<float *>(lines.data()); }
    float &operator[](size_t j) { return data()[j]; }
};

inline Vector exponential(Vector x) {  // x <= 0; relative error 1e-7
    x = x > -87.0f ? x : Vector{} - 87.0f;
    Integers k = __builtin_convertvector(x * 1.44269504f - 0.5f, Integers);
    Vector whole = __builtin_convertvector(k, Vector), r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    Vector p = Vector{} + 1.0f / 5040;
    p = p * r + 1.0f / 720; p = p * r + 1.0f / 120; p = p * r + 1.0f / 24; p = p * r + 1.0f / 6; p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    return p * reinterpret_cast<Vector>((k + 127) << 23);
}

inline Four folded(Four v) { return v; }
inline Four folded(Eight v) {
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
#ifdef __AVX512F__
inline Four folded(Vector v) {
    return folded(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                  __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}
#endif

inline float sum(Vector v) { Four f = folded(v); return f[0] + f[1] + f[2] + f[3]; }

inline Four sums_of(Vector v0, Vector v1, Vector v2, Vector v3) {
    Four a = folded(v0), b = folded(v1), c = folded(v2), d = folded(v3);
    Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
    Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

// P [KT, m] = W [KT, d] X [d, m]
template <int KT>
void logits(const float *W, int d, const float *X, int64_t stride, int m, float *P, int ldp) {
    int r = 0;
    for (; r + 2 * LANES <= m; r += 2 * LANES) {
        Vector a[KT] = {}, b[KT] = {};
        for (int i = 0; i < d; i++) {
            Vector x = load(X + i * stride + r), y = load(X + i * stride + r + LANES);
            for (int k = 0; k < KT; k++) { float w = W[k * d + i]; a[k] += w * x; b[k] += w * y; }
        }
        for (int k = 0; k < KT; k++) { store(P + k * ldp + r, a[k]); store(P + k * ldp + r + LANES, b[k]); }
    }
    for (; r < m; r += LANES) {
        Vector a[KT] = {};
        for (int i = 0; i < d; i++) {
            Vector x = load(X + i * stride + r);
            for (int k = 0; k < KT; k++) a[k] += W[k * d + i] * x;
        }
        for (int k = 0; k < KT; k++) store(P + k * ldp + r, a[k]);
    }
}

// G [KT, IT] += D [KT, m] X [IT, m]'
template <int KT, int IT>
void outer(const float *D, int ldd, const float *X, int64_t stride, int m, float *G, int d) {
    Vector sums[KT][IT] = {};
    for (int r = 0; r < m; r += LANES) {
        Vector x[IT];
        for (int i = 0; i < IT; i++) x[i] = load(X + i * stride + r);
        for (int k = 0; k < KT; k++) {
            Vector c = load(D + k * ldd + r);
            in_register(c);
            for (int i = 0; i < IT; i++) sums[k][i] += c * x[i];
        }
    }
    for (int k = 0; k < KT; k++) {
        float *to = G + k * d;
        if constexpr (IT == 4) {
            Four found = sums_of(sums[k][0], sums[k][1], sums[k][2], sums[k][3]);
            for (int i = 0; i < 4; i++) to[i] += found[i];
        } else {
            for (int i = 0; i < IT; i++) to[i] += sum(sums[k][i]);
        }
    }
}

template <int KT>
void gradient_tile(const float *D, int ldd, const float *X, int64_t stride, int m, float *G, int d) {
    int i = 0;
    for (; i + FEATURES_AT_ONCE <= d; i += FEATURES_AT_ONCE)
        outer<KT, FEATURES_AT_ONCE>(D, ldd, X + i * stride, stride, m, G + i, d);
    for (; i < d; i++) outer<KT, 1>(D, ldd, X + i * stride, stride, m, G + i, d);
}

// G [K, d] += D [K, m] X [d, m]', a few actions at a time
void add_gradient(const float *D, int K, int ldd, const float *X, int d, int64_t stride, int m, float *G) {
    for (int k = 0; k < K; k += ACTIONS_AT_ONCE) {
        const float *rows = D + k * ldd;
        float *to = G + k * d;
        switch (std::min(K - k, ACTIONS_AT_ONCE)) {
            case 5: gradient_tile<5>(rows, ldd, X, stride, m, to, d); break;
            case 4: gradient_tile<4>(rows, ldd, X, stride, m, to, d); break;
            case 3: gradient_tile<3>(rows, ldd, X, stride, m, to, d); break;
            case 2: gradient_tile<2>(rows, ldd, X, stride, m, to, d); break;
            default: gradient_tile<1>(rows, ldd, X, stride, m, to, d);
        }
    }
}

void all_logits(const float *W, int K, int d, const float *X, int64_t stride, int m, float *P, int ldp) {
    for (int k = 0; k < K; k += ACTIONS_AT_ONCE) {
        const float *weights = W + k * d;
        float *to = P + k * ldp;
        switch (std::min(K - k, ACTIONS_AT_ONCE)) {
            case 5: logits<5>(weights, d, X, stride, m, to, ldp); break;
            case 4: logits<4>(weights, d, X, stride, m, to, ldp); break;
            case 3: logits<3>(weights, d, X, stride, m, to, ldp); break;
            case 2: logits<2>(weights, d, X, stride, m, to, ldp); break;
            default: logits<1>(weights, d, X, stride, m, to, ldp);
        }
    }
}

// P = softmax of W X; played[r] = P[action of r]; rows beyond n are padding. m = padded(n)
void softmax(const float *W, int K, int d, const float *X, int64_t stride, int m, const int32_t *actions, float *P,
             int ldp, float *played) {
    all_logits(W, K, d, X, stride, m, P, ldp);
    for (int r = 0; r < m; r += LANES) {
        Vector top = load(P + r), total{}, hit{};
        Integers taken = load(actions + r);
        for (int k = 1; k < K; k++) { Vector z = load(P + k * ldp + r); top = z > top ? z : top; }
        for (int k = 0; k < K; k++) {
            Vector e = exponential(load(P + k * ldp + r) - top);
            store(P + k * ldp + r, e);
            total += e;
            hit = taken == k ? e : hit;
        }
        total = 1.0f / total;
        for (int k = 0; k < K; k++) store(P + k * ldp + r, load(P + k * ldp + r) * total);
        store(played + r, hit * total);
    }
}

// D = c (1{a = played} - P)
void pull(const float *P, int K, int m, int ldp, const int32_t *actions, const float *c, float *D) {
    for (int r = 0; r < m; r += LANES) {
        Integers taken = load(actions + r);
        Vector whole = load(c + r);
        for (int k = 0; k < K; k++)
            store(D + k * ldp + r, (taken == k ? whole : Vector{}) - whole * load(P + k * ldp + r));
    }
}

// The penalty for p = 0 and its slope in the variance.
void phi(double variance, double alpha, double t, double log_inv_delta, double scale, double &value, double &slope) {
    double sigma = std::max(std::sqrt(variance), 1e-9), root = std::sqrt(1 + std::log1p(1 / sigma));
    double root_t = std::sqrt(t), root_log = std::sqrt(log_inv_delta);
    value = scale * (alpha / t + (sigma * root + sigma * root_log) / root_t + alpha * log_inv_delta / t);
    slope = scale * (root - 0.5 / (root * (1 + sigma)) + root_log) / root_t / (2 * sigma);
}

// One thread's share of a log, in one pass: sum of the losses' and of the weights' part of the gradient, apart, since
// the penalty's slope is known only at the end.
struct Share {
    double risk = 0, variance = 0;
    std::vector<float> of_losses, of_weights;

    void add(const float *W, int K, int d, const float *X, int64_t n, int64_t from, int64_t to, const int32_t *actions,
             const float *residuals, const float *inverse, float alpha) {
        of_losses.assign(K * d, 0), of_weights.assign(K * d, 0);
        Buffer P, D, tail;
        P.zeros(K * BLOCK), D.zeros(K * BLOCK);
        alignas(64) float w[BLOCK], first[BLOCK], second[BLOCK], e[BLOCK], q[BLOCK];
        alignas(64) int32_t a[BLOCK];
        for (int64_t at = from; at < to; at += BLOCK) {
            int rows = static_cast<int>(std::min<int64_t>(BLOCK, to - at)), m = padded(rows);
            const float *x = X + at, *residual = residuals + at, *inverted = inverse + at;
            const int32_t *played = actions + at;
            int64_t stride = n;
            if (m != rows) {  // the last block: padded with rows of weight 0
                tail.zeros(static_cast<size_t>(d) * m);
                for (int i = 0; i < d; i++) std::copy(x + i * n, x + i * n + rows, tail.data() + i * m);
                std::fill(e, e + m, 0.0f), std::fill(q, q + m, 0.0f), std::fill(a, a + m, 0);
                std::copy(residual, residual + rows, e), std::copy(inverted, inverted + rows, q);
                std::copy(played, played + rows, a);
                x = tail.data(), stride = m, residual = e, inverted = q, played = a;
            }
            softmax(W, K, d, x, stride, m, played, P.data(), BLOCK, w);
            float risks = 0, variances = 0;
            for (int r = 0; r < m; r++) {
                float weight = w[r] * inverted[r], live = weight < alpha ? weight : 0.0f;
                float centred = r < rows ? std::min(weight, alpha) - 1 : 0.0f;
                risks += centred * residual[r], variances += centred * centred;
                first[r] = live * residual[r], second[r] = live * 2 * (weight - 1);
            }
            risk += risks, variance += variances;
            pull(P.data(), K, m, BLOCK, played, first, D.data());
            add_gradient(D.data(), K, BLOCK, x, d, stride, m, of_losses.data());
            pull(P.data(), K, m, BLOCK, played, second, D.data());
            add_gradient(D.data(), K, BLOCK, x, d, stride, m, of_weights.data());
        }
    }
};

}  // namespace

extern "C" {

// R + Phi of a whole log and its gradient. W [K, d], X [d, n]; penalty: alpha, t, log 1/delta, scale.
double objective(const float *W, int K, int d, const float *X, int64_t n, const int32_t *actions,
                 const float *residuals, const float *inverse, const double *penalty, double shrink, int threads,
                 float *gradient) {
    std::vector<Share> shares(threads);
    std::vector<std::thread> running;
    int64_t part = (n / threads + BLOCK) / BLOCK * BLOCK;
    auto work = [&](int j) {
        shares[j].add(W, K, d, X, n, std::min(n, j * part), j + 1 == threads ? n : std::min(n, (j + 1) * part), actions,
                      residuals, inverse, static_cast<float>(penalty[0]));
    };
    for (int j = 1; j < threads; j++) running.emplace_back(work, j);
    work(0);
    for (auto &thread : running) thread.join();
    double risk = 0, variance = 0, value, slope, size = 0;
    for (auto &share : shares) risk += share.risk / n, variance += share.variance / n;
    phi(variance, penalty[0], penalty[1], penalty[2], penalty[3], value, slope);
    for (int j = 0; j < K * d; j++) {
        double sum = 0;
        for (auto &share : shares) sum += share.of_losses[j] + slope * share.of_weights[j];
        gradient[j] = static_cast<float>(sum / n + shrink * W[j]);
        size += static_cast<double>(W[j]) * W[j];
    }
    return risk + value + 0.5 * shrink * size;
}

}
