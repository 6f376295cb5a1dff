// Sight: what was seen at a scope, and by what a later look tells cheaply that it is still so.
//
// Looking at gigabytes (hashing, archiving, reading a folder) happens outside the transition; inside, the facts are
// compared, and only what is no longer so is looked at again (CONTRACT section 2).
#pragma once
#include <map>
#include <memory>
#include <string>

#include "base/digest.h"
#include "base/ids.h"
#include "engine/manifest.h"
#include "os/file.h"

namespace holdfast::engine {

// What is below a folder, and, at an end, how that differs from what was captured.
struct FolderSight {
  Tree tree;
  Comparison comparison;
};

struct Sight {
  std::string kind = "none";  // file folder none other unverifiable
  ContentDigest digest;       // of a file, or of a folder's manifest
  os::Facts facts;            // of a file or folder
  std::string reason;         // of unverifiable
  bool archived = false;      // the bytes are in Amber
  std::shared_ptr<const FolderSight> folder = {};
  Generation generation = {};  // of the tenancy whose end it was looked at for: a folder was compared with its capture
};

using Sights = std::map<std::string, Sight>;  // by full scope

}  // namespace holdfast::engine
