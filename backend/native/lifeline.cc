#include "lifeline.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>

#include "answering.h"
#include "interpreter.h"

namespace penstock {
namespace {

constexpr const char* kModule = "penstock.serving.in_process";
// How long to wait for answers that are being sent. Ample time: copying and sending take milliseconds.
constexpr double kAnsweringSeconds = 5;

void write_line(int lifeline, const std::string& line) {
  // If the supervisor is gone, nobody needs the answer.
  [[maybe_unused]] const ssize_t written = write(lifeline, line.data(), line.size());
}

// Calls a function of Penstock's Python module; returns the text that it returns, or its error message.
template <typename... Arguments>
std::string call(const char* name, const char* format, Arguments... arguments) {
  Held held;
  Reference module(PyImport_ImportModule(kModule));
  Reference answer(module ? PyObject_CallMethod(module.get(), name, format, arguments...) : nullptr);
  return answer ? bytes_of(answer.get()) : take_error();
}

void answer_line(int lifeline, const std::string& line) {
  if (line == "stop") {
    std::fputs((call("stop", nullptr) + "\n").c_str(), stderr);
    _exit(0);
  }
  const std::string drained = call("drain", "(s)", line.c_str());
  // Some answers of models may not have been sent yet.
  wait_for_answers(kAnsweringSeconds);
  write_line(lifeline, drained + "\n");
}

void listen(int lifeline) {
  write_line(lifeline, "listening\n");
  std::string line;
  char byte = 0;
  while (true) {
    const ssize_t size = read(lifeline, &byte, 1);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      std::fputs("penstock: the supervisor has ended, and so does the server\n", stderr);
      _exit(1);
    }
    if (byte != '\n') {
      line += byte;
      continue;
    }
    answer_line(lifeline, line);
    line.clear();
  }
}

int find_lifeline() {
  const char* number = getenv(kLifeline);
  const int lifeline = number == nullptr ? -1 : std::atoi(number);
  // The socket is closed in programs that models start: they must not keep it open.
  return lifeline > 2 && fcntl(lifeline, F_SETFD, FD_CLOEXEC) == 0 ? lifeline : -1;
}

}  // namespace

void listen_to_supervisor() {
  const int lifeline = find_lifeline();
  if (lifeline < 0) return;
  unsetenv(kLifeline);  // this library may be loaded again, under another name of the backend
  std::thread(listen, lifeline).detach();
}

}  // namespace penstock
