#include "engine/doctor_attack_list.h"

namespace holdfast::engine {

using guard::Operation;
using Before = Attack::Before;

const std::vector<Attack>& attack_list() {
  static const std::vector<Attack> list = {
      {.operation = Operation::open_write, .way = "write_only", .act = "open_write_only"},
      {.operation = Operation::open_write, .way = "read_and_write", .act = "open_read_write"},
      {.operation = Operation::open_write, .way = "append", .act = "open_append"},
      {.operation = Operation::open_write,
       .way = "through_symbolic_link",
       .act = "open_other_name",
       .before = Before::symbolic_link},
      {.operation = Operation::open_write,
       .way = "through_hard_link",
       .act = "open_other_name",
       .before = Before::hard_link,
       .remark = "a file with several names is leased, but not called enforced"},
      {.operation = Operation::open_write, .way = "through_proc_fd", .act = "open_through_proc_fd"},
      {.operation = Operation::open_write, .way = "without_waiting", .act = "open_without_waiting"},
      {.operation = Operation::open_write,
       .way = "by_another_user",
       .act = "open_write_only",
       .by_another_user = true,
       .of_the_guard_alone = true},
      {.operation = Operation::open_write,
       .way = "descriptor_opened_before",
       .act = "write_to_kept",
       .before = Before::descriptor},
      {.operation = Operation::truncate, .way = "open_truncating", .act = "open_truncating"},
      {.operation = Operation::truncate, .way = "creat", .act = "creat"},
      {.operation = Operation::truncate, .way = "truncate", .act = "truncate"},
      {.operation = Operation::truncate, .way = "ftruncate", .act = "ftruncate"},
      {.operation = Operation::truncate,
       .way = "open_reading_truncating",
       .act = "open_reading_truncating",
       .remark = "O_RDONLY|O_TRUNC empties a file without breaking a read lease"},
      {.operation = Operation::rename, .way = "rename_over", .act = "rename_over", .before = Before::second_file},
      {.operation = Operation::rename, .way = "rename_away", .act = "rename_away"},
      {.operation = Operation::rename, .way = "exchange_names", .act = "exchange_names", .before = Before::second_file},
      {.operation = Operation::unlink, .way = "unlink", .act = "unlink"},
      {.operation = Operation::link, .way = "link", .act = "link"},
      {.operation = Operation::create,
       .way = "at_the_absent_name",
       .act = "create_at_name",
       .on_absent_name = true,
       .of_the_guard_alone = true},
      {.operation = Operation::create,
       .way = "beside_the_file",
       .act = "create_beside",
       .of_the_guard_alone = true,
       .in_the_claim = false,
       .remark = "another name is not what is leased"},
      {.operation = Operation::metadata, .way = "chmod", .act = "chmod"},
      {.operation = Operation::metadata, .way = "chown", .act = "chown", .needs_superuser = true},
      {.operation = Operation::metadata, .way = "utimes", .act = "utimes"},
      {.operation = Operation::metadata, .way = "setxattr", .act = "setxattr"},
      {.operation = Operation::mmap_store, .way = "mapping_made_after", .act = "mmap_store"},
      {.operation = Operation::mmap_store,
       .way = "mapping_made_before",
       .act = "store_to_kept",
       .before = Before::mapping},
  };
  return list;
}

Json never_tried() {
  const auto entry = [](const char* what, const char* why) { return Json{{"what", what}, {"why", why}}; };
  return Json::array(
      {entry("rename of the parent folder", "it would take the scratch files with it; it is not stopped, but noticed"),
       entry("a mount over the file, a bind mount of it", "doctor mounts nothing"),
       entry("sendfile, splice, copy_file_range, fallocate, io_uring",
             "each needs an open for writing first, and that is tried"),
       entry("the block device, a loop device, a file system's own donation calls",
             "they go past every file; nothing here stops them"),
       entry("a kernel lease that is not answered until lease-break-time",
             "it takes that long; the kernel then lets the writer in")});
}

}  // namespace holdfast::engine
