// holdfast: parses the command line, sends the request, prints the answer. What it does is in the engine.
#include <exception>
#include <new>

#include "base/json.h"
#include "os/stream.h"
#include "surfaces/cli/verbs.h"

namespace {

using namespace holdfast;

int run(const std::vector<std::string>& words, const cli::Surroundings& surroundings) {
  const auto invocation = cli::parse_words(words);
  cli::Output output(invocation ? invocation->json : cli::asks_for_json(words), surroundings);
  if (!invocation) return output.refuse(invocation.refusal());
  return cli::run_verb(*invocation, surroundings, output);
}

// What happened before an exception is not known here, so neither is its effect.
int failed(const std::vector<std::string>& words, const cli::Surroundings& surroundings, const std::string& what) {
  cli::Output output(cli::asks_for_json(words), surroundings);
  return output.refuse(Refusal(Code::os_failed, what));
}

}  // namespace

int main(int argc, char** argv) {
  os::prepare_standard_streams();
  try {
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    const cli::Surroundings surroundings = cli::this_process_surroundings();
    try {
      return run(words, surroundings);
    } catch (const std::bad_alloc&) {
      return failed(words, surroundings, "out of memory");
    } catch (const std::exception& problem) {
      return failed(words, surroundings, "an error inside the program: " + printable(problem.what()));
    }
  } catch (...) {
    return facts_of(Code::os_failed).exit_status;  // not even the words could be read
  }
}
