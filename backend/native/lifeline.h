// The connection to the process that supervises this server.
#pragma once

namespace penstock {

// The environment variable with the number of the socket to the supervisor.
constexpr const char* kLifeline = "PENSTOCK_LIFELINE";

// Listens to the supervisor from now on, if there is one.
//
// First, this process writes the line "listening". It answers each line of the supervisor by one line, except "stop", which ends this
// process after closing our models; any other line is a request to drain them, for `in_process.drain`. If the supervisor's end of the
// socket closes, the supervisor is dead, and this process ends at once.
void listen_to_supervisor();

}  // namespace penstock
