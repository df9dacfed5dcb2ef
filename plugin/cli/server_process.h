// ServerProcess: serve() in a child process and process group of its own, which reports back when
// it listens, how the program ended, and what failed.
//
// Threading: one thread; forks.
#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "plugin/server/serve.h"

namespace tailtrace {

class ServerProcess {
 public:
  // Its stderr goes to the file `log`; the program gets our descriptors 0, 1 and 2. Returns when a
  // debugger can connect. Errors: those of serve().
  static Result<ServerProcess> start(ServeOptions options, const std::string& log);

  ServerProcess(ServerProcess&&) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  // Ends the server if it is still there.
  ~ServerProcess();

  const std::string& comm() const { return comm_; }

  // Waits until the server has ended. The wait status of the program, if it ended by itself.
  // Errors: those of serve(); kSystem when the server itself broke down.
  Result<std::optional<int>> wait();

 private:
  ServerProcess(pid_t pid, UniqueFd reports) : pid_(pid), reports_(std::move(reports)) {}
  // False: the server has closed its side. Errors: what it reports as its failure.
  Result<bool> take_report();
  std::optional<std::string> read_line();
  int wait_for_exit();

  pid_t pid_ = -1;
  UniqueFd reports_;
  std::string unread_, comm_;
  std::optional<int> program_status_;
};

}  // namespace tailtrace
