// What both ends of the workspace's socket share: documents over frames, and which verbs carry content.
// docs/formats/socket.md is the protocol.
//
// A document that is longer than a frame travels as 'C' frames with its leading pieces and a 'J' frame with the last.
// Errors: request_malformed (not the protocol, more than kDocumentMax, no JSON), server_answer_lost (a broken stream).
#pragma once
#include <optional>
#include <string>

#include "holdfast/result.h"
#include "os/local_socket.h"

namespace holdfast {

constexpr std::size_t kDocumentMax = 64U << 20U;

bool takes_content(const std::string& verb);

Result<void> send_document(os::Connection& connection, const Json& document);

// Puts frames together. add() says nullopt until the last frame of the document has come.
class DocumentAssembly {
 public:
  Result<std::optional<Json>> add(os::Frame frame);

 private:
  std::string text_;
};

// The next document; nullopt where the peer ended the connection between documents.
Result<std::optional<Json>> receive_document(os::Connection& connection);

}  // namespace holdfast
