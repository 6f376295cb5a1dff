// A measured step beside a bare one, by turns, so that a disk that is slower for a while is slower for both.
#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace holdfast::bench {

class Pairs {
 public:
  template <class Bare, class Measured>
  void add(benchmark::State& state, Bare bare, Measured measured) {
    const double one = seconds_of(bare);
    const double whole = seconds_of(measured);
    bare_.push_back(one);
    measured_.push_back(whole);
    ratios_.push_back(whole / one);
    state.SetIterationTime(whole);
  }
  void report(benchmark::State& state) {
    if (ratios_.empty()) return;
    state.counters["bare_us"] = at_quantile(bare_, 2) * 1e6;
    state.counters["median_us"] = at_quantile(measured_, 2) * 1e6;
    state.counters["ratio"] = at_quantile(ratios_, 2);
    state.counters["ratio_quarter"] = at_quantile(ratios_, 1);
    state.counters["ratio_three_quarters"] = at_quantile(ratios_, 3);
  }

 private:
  template <class Act>
  static double seconds_of(Act act) {
    const auto began = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  static double at_quantile(std::vector<double> values, std::size_t quarter) {
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1, values.size() * quarter / 4)];
  }
  std::vector<double> bare_;
  std::vector<double> measured_;
  std::vector<double> ratios_;
};

}  // namespace holdfast::bench
