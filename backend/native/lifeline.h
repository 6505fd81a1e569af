// The connection to the process that supervises this server.
#pragma once

namespace penstock {

// The environment variable with the file descriptor of the socket to the supervisor.
constexpr const char* kLifeline = "PENSTOCK_LIFELINE";

// Listens to the supervisor from now on, if there is one.
//
// First, this process writes the line "listening". Then it answers each line of the supervisor with one line. The line "stop" has no
// answer: this process closes our models and ends. Any other line is a request to drain models, for `in_process.drain`. If the supervisor's
// end of the socket closes, the supervisor is dead, and this process ends at once.
void listen_to_supervisor();

}  // namespace penstock
