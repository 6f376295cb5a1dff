#include "surfaces/cli/content.h"

#include <algorithm>

#include "base/json.h"
#include "os/file.h"
#include "os/stream.h"

namespace holdfast::cli {

Result<std::unique_ptr<StreamContent>> StreamContent::open(const std::string& from) {
  if (from == "-") return std::unique_ptr<StreamContent>(new StreamContent(os::Handle(0), true));
  HF_TRY(os::Handle file, os::open_to_read(from, Code::content_unreadable));
  HF_TRY(const os::Facts facts, os::facts_of_open(file));
  if (facts.kind == os::Kind::folder) {
    return Refusal(Code::content_unreadable, printable(from) + " is a folder", Json{{"path", printable(from)}});
  }
  std::unique_ptr<StreamContent> content(new StreamContent(std::move(file), false));
  // Files below /proc call themselves regular and empty, and are not.
  if (facts.kind == os::Kind::regular && facts.byte_count > 0) content->byte_count_ = facts.byte_count;
  return content;
}

StreamContent::~StreamContent() {
  if (borrowed_) stream_.release();
}

Result<std::size_t> StreamContent::read(char* into, std::size_t size) {
  begun_ = true;
  return os::read_some(stream_, into, std::min(size, kPiece), Code::content_unreadable);
}

}  // namespace holdfast::cli
