// `receive`: a worker that takes commands from standard input, one a line, to their receivers, and runs a program for
// each that a command receiver accepted.
//
// A line is what `issue` prints: {"command":{…},"payload_base64":"…"}. Each is answered with one line on standard
// output: what the receiver decided, and how the program ended; or the refusal. The program gets the payload on
// standard input, the command in its environment (HOLDFAST_COMMAND and its parts); what it prints goes to standard
// error. Promises: a malformed line is answered and ends nothing; a program runs once for one operation id, and only
// when the fence has let its command through; its end is recorded, and whether its tenancy was still current then. Does
// not promise: that a program is stopped when its tenancy ends meanwhile: its effect is its own, and the handoff stays
// open until it has ended. Status: 0 every line was accepted (or repeated) and its program ended with 0, else 1; 5
// where the machine failed. A program that was ended by a signal, or that exits above 128 as shells report one, ends
// the worker, too: what ended it may be meant for both. Source: CONTRACT section 5 ("command"); second seed, T3.
#pragma once
#include <string>

#include "surfaces/cli/output.h"
#include "surfaces/cli/parse.h"
#include "surfaces/cli/surroundings.h"

namespace holdfast::cli {

int run_receive(const Invocation& invocation, const std::string& root, const Surroundings& surroundings,
                Output& output);

}  // namespace holdfast::cli
