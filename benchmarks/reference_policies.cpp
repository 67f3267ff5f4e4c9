// The objective and its gradient for two policies, in one pass over the log, on one thread: what `ActionWiseValue` and
// `GaussianValue` compute. Features are single precision and feature-major, sums are double precision.
//
// The penalty's slope is known only at the end, so the gradient is gathered in two parts: that of the losses and that of
// the weights' spread.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t BLOCK = 256;

struct Sums {
    double risk = 0, variance = 0;
    std::vector<double> of_losses, of_weights;

    explicit Sums(int size) : of_losses(size, 0.0), of_weights(size, 0.0) {}

    // What row s adds to both means; c0 and c1 are its shares of the two parts of the gradient.
    void row(double w, double e, double alpha, double &c0, double &c1) {
        double centred = std::min(w, alpha) - 1;
        risk += centred * e;
        variance += centred * centred;
        c0 = w < alpha ? w * e : 0.0;
        c1 = w < alpha ? 2 * w * (w - 1) : 0.0;
    }

    // penalty: alpha, t, log 1/delta, scale; p = 0.
    double end(const double *params, int size, int64_t n, const double *penalty, double shrink, double *gradient) const {
        double sigma = std::max(std::sqrt(variance / n), 1e-9);
        double root = std::sqrt(1 + std::log1p(1 / sigma)), root_t = std::sqrt(penalty[1]);
        double root_log = std::sqrt(penalty[2]);
        double value = penalty[0] / penalty[1] + sigma * (root + root_log) / root_t + penalty[0] * penalty[2] / penalty[1];
        double slope = (root - 0.5 / (root * (1 + sigma)) + root_log) / root_t / (2 * sigma);
        double square = 0;
        for (int i = 0; i < size; i++) {
            gradient[i] = (of_losses[i] + penalty[3] * slope * of_weights[i]) / n + shrink * params[i];
            square += params[i] * params[i];
        }
        return risk / n + penalty[3] * value + 0.5 * shrink * square;
    }
};

// out = theta X for columns first to first + m of X [d, n].
void combine(const double *theta, const float *X, int d, int64_t n, int64_t first, int64_t m, double *__restrict out) {
    for (int64_t r = 0; r < m; r++) out[r] = 0;
    int i = 0;
    for (; i + 4 <= d; i += 4) {
        const float *a = X + i * n + first, *b = a + n, *c = b + n, *e = c + n;
        for (int64_t r = 0; r < m; r++)
            out[r] += theta[i] * a[r] + theta[i + 1] * b[r] + theta[i + 2] * c[r] + theta[i + 3] * e[r];
    }
    for (; i < d; i++) {
        const float *a = X + i * n + first;
        for (int64_t r = 0; r < m; r++) out[r] += theta[i] * a[r];
    }
}

void gather(const float *X, int d, int64_t n, int64_t first, int64_t m, const double *c0, const double *c1, Sums &sums) {
    for (int i = 0; i < d; i++) {
        const float *a = X + i * n + first;
        double s0 = 0, s1 = 0;
        for (int64_t r = 0; r < m; r++) s0 += c0[r] * a[r], s1 += c1[r] * a[r];
        sums.of_losses[i] += s0, sums.of_weights[i] += s1;
    }
}

}  // namespace

extern "C" {

// theta [d], X [d, total], offsets [n + 1]; gradient [d].
double actionwise(const double *theta, int d, const float *X, const int64_t *offsets, int64_t n, const int64_t *actions,
                  const double *residuals, const double *inverse, const double *penalty, double shrink,
                  double *gradient) {
    Sums sums(d);
    int64_t total = offsets[n], most = BLOCK;
    for (int64_t s = 0; s < n; s++) most = std::max(most, offsets[s + 1] - offsets[s]);
    std::vector<double> pi(most), c0(most), c1(most);
    for (int64_t start = 0, stop; start < n; start = stop) {
        int64_t first = offsets[start];
        for (stop = start + 1; stop < n && offsets[stop + 1] - first <= BLOCK;) stop++;
        int64_t m = offsets[stop] - first;
        combine(theta, X, d, total, first, m, pi.data());
        for (int64_t s = start; s < stop; s++) {
            int64_t at = offsets[s] - first, end = offsets[s + 1] - first;
            double top = pi[at];
            for (int64_t r = at + 1; r < end; r++) top = std::max(top, pi[r]);
            for (int64_t r = at; r < end; r++) pi[r] -= top;
        }
        for (int64_t r = 0; r < m; r++) pi[r] = std::exp(pi[r]);
        for (int64_t s = start; s < stop; s++) {
            int64_t at = offsets[s] - first, end = offsets[s + 1] - first, played = at + actions[s];
            double all = 0, a, b;
            for (int64_t r = at; r < end; r++) all += pi[r];
            double share = 1 / all;
            sums.row(pi[played] * share * inverse[s], residuals[s], penalty[0], a, b);
            for (int64_t r = at; r < end; r++) c0[r] = -a * share * pi[r], c1[r] = -b * share * pi[r];
            c0[played] += a, c1[played] += b;
        }
        gather(X, d, total, first, m, c0.data(), c1.data(), sums);
    }
    return sums.end(theta, d, n, penalty, shrink, gradient);
}

// theta [d], X [d, n]; centred: actions less the policy's centre, [n]; gradient [d]. The scale stays as it is.
double gaussian(const double *theta, int d, double scale, const float *X, int64_t n, const double *centred,
                const double *residuals, const double *log_propensities, const double *penalty, double shrink,
                double *gradient) {
    Sums sums(d);
    double z[BLOCK], w[BLOCK], c0[BLOCK], c1[BLOCK];
    double constant = std::log(scale) + 0.5 * std::log(2 * M_PI), inverse = 1 / scale;
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t m = std::min(BLOCK, n - first);
        combine(theta, X, d, n, first, m, z);
        for (int64_t r = 0; r < m; r++) {
            z[r] = (centred[first + r] - z[r]) * inverse;
            w[r] = std::exp(-0.5 * z[r] * z[r] - constant - log_propensities[first + r]);
        }
        for (int64_t r = 0; r < m; r++) {
            sums.row(w[r], residuals[first + r], penalty[0], c0[r], c1[r]);
            c0[r] *= z[r] * inverse, c1[r] *= z[r] * inverse;
        }
        gather(X, d, n, first, m, c0, c1, sums);
    }
    return sums.end(theta, d, n, penalty, shrink, gradient);
}

}
