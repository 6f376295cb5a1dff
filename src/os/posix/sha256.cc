// SHA-256 by OpenSSL's EVP interface.
#include <openssl/evp.h>

#include "base/digest.h"
#include "holdfast/result.h"

namespace holdfast {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  HF_ASSERT(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(state_->context); }

void Sha256::add(std::string_view bytes) {
  HF_ASSERT(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  static constexpr char kHex[] = "0123456789abcdef";
  unsigned char raw[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  HF_ASSERT(EVP_DigestFinal_ex(state_->context, raw, &length) == 1 && length == 32);
  std::string out;
  for (unsigned int at = 0; at < length; ++at) {
    out += kHex[raw[at] >> 4U];
    out += kHex[raw[at] & 15U];
  }
  return out;
}

}  // namespace holdfast
