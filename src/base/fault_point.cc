#include "base/fault_point.h"

#ifdef HOLDFAST_FAULT_POINTS
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace holdfast {
namespace {

struct Order {
  std::string point;
  std::string act;
  int passage = 1;
};

Order order_from_environment() {
  const char* text = std::getenv("HOLDFAST_FAULT");
  Order order;
  if (text == nullptr) return order;
  const std::string whole(text);
  const auto colon = whole.find(':');
  order.point = whole.substr(0, colon);
  order.act = colon == std::string::npos ? "kill" : whole.substr(colon + 1);
  if (const auto at = order.point.find('@'); at != std::string::npos) {
    order.passage = std::atoi(order.point.c_str() + at + 1);
    order.point.resize(at);
  }
  return order;
}

const Order& the_order() {
  static const Order order = order_from_environment();
  return order;
}

}  // namespace

bool fault_ordered(const char* name) { return the_order().act == "fail" && the_order().point == name; }

void fault_point(const char* name) {
  const Order& order = the_order();
  static std::atomic<int> passages{0};
  if (order.point.empty() || order.point != name) return;
  if (passages.fetch_add(1) + 1 != order.passage) return;
  if (order.act == "exit") std::_Exit(99);
  if (order.act.rfind("sleep=", 0) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(order.act.c_str() + 6)));
    return;
  }
  if (order.act.rfind("wait=", 0) == 0) {
    const std::string path = order.act.substr(5);
    std::ofstream(path).flush();
    for (int turn = 0; turn < 6000 && std::ifstream(path).good(); ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return;
  }
#ifdef _WIN32
  std::_Exit(99);
#else
  std::raise(order.act == "stop" ? SIGSTOP : SIGKILL);
#endif
}

}  // namespace holdfast
#endif
