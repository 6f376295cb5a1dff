// What the doctor tries, in the order of the report.
#pragma once
#include <string>
#include <vector>

#include "guard/guard.h"

namespace holdfast::engine {

struct Attack {
  // What the attacker has done before the guard is taken.
  enum class Before { nothing, hard_link, symbolic_link, descriptor, mapping, second_file };

  guard::Operation operation;
  std::string way;  // in the report
  std::string act;  // what the attacker is asked for (os/hostile_neighbour.h)
  Before before = Before::nothing;
  bool on_absent_name = false;   // the guard stands on a name that nothing bears
  bool by_another_user = false;  // who may write to the file
  bool needs_superuser = false;
  bool of_the_guard_alone = false;  // not tried against a flag on the file
  bool in_the_claim = true;         // false: what it does is not about the leased file
  std::string remark = {};

  // It was there before the guard: what counts is whether the guard says that nobody is.
  bool is_of_an_earlier_writer() const { return before == Before::descriptor || before == Before::mapping; }
  // It is after the bytes; the others are after names and metadata.
  bool is_after_bytes() const {
    return operation == guard::Operation::open_write || operation == guard::Operation::truncate ||
           operation == guard::Operation::mmap_store;
  }
};

const std::vector<Attack>& attack_list();

// {"what","why"} of what is never tried.
Json never_tried();

}  // namespace holdfast::engine
