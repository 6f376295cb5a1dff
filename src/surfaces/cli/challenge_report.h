// What a challenge showed: its steps as they are played, one line each, and the evidence package that is made of them.
//
// Calling sequence: play() once; package() after it. With --json nothing is printed on the way.
// Promises: a step that refuses or fails makes the challenge fail, and so do the steps that could not be played after
// it; the package is made all the same. What was not shown is never counted as shown: it is in `unknown`.
// Threads: one.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "evidence/package.h"
#include "holdfast/result.h"
#include "surfaces/cli/output.h"

namespace holdfast::cli::challenge {

class Scratch;

struct Shown {
  bool passed = true;
  std::string outcome = {};             // one or two words: "refused", "diverted", "generation 2"
  std::vector<std::string> lines = {};  // what a reader has to see of it
  Json facts = Json::object();
};

struct Step {
  std::string title;
  std::function<Result<Shown>()> play;
  bool essential = false;  // without it the later ones make no sense
};

class Report {
 public:
  Report(Output& output, std::string challenge) : output_(output), challenge_(std::move(challenge)) {}

  // false where `asked_to_end` said so on the way.
  bool play(const std::vector<Step>& steps, Scratch& scratch, const std::function<bool()>& asked_to_end);

  // A decision of the program with what it was made from (docs/formats/evidence.md, packages).
  void decided(Json decision) { decisions_.push_back(std::move(decision)); }
  void stays_unknown(const std::string& what) { unknown_.push_back(what); }

  bool passed() const { return passed_; }
  // Evidence of another side, with a chain of its own.
  void also_has(const std::string& name, evidence::Package part) { parts_[name] = std::move(part); }

  // {"challenge","passed","steps","unknown"}: steps without what the children printed.
  Json document() const;
  // `files` beside those that it makes itself: steps.json, decisions.json.
  evidence::Package package(std::map<std::string, std::string> files) const;

 private:
  Json play_one(const Step& step, const std::string& number, Scratch& scratch);
  void say(const std::string& text);

  Output& output_;
  std::string challenge_;
  bool passed_ = true;
  Json steps_ = Json::array();
  Json decisions_ = Json::array();
  Json unknown_ = Json::array();
  std::map<std::string, evidence::Package> parts_;
};

// What every manifest of a challenge says of its making.
Json manifest_facts(const std::string& challenge, bool passed, const Json& unknown);

}  // namespace holdfast::cli::challenge
