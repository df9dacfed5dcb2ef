// Listener: where a debugger connects: a TCP port, a socket in the file system, or stdin and
// stdout.
//
// Threading: one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "plugin/server/rsp/connection.h"

namespace tailtrace {

class Listener {
 public:
  // "HOST:PORT", ":PORT", "PORT", "-", "stdio", "unix:PATH". Without a host it is loopback; another
  // host than loopback needs `allow_remote_hosts`. Errors: kUsage, kPermission, kSystem.
  static Result<Listener> open(const std::string& comm, bool allow_remote_hosts);

  // A debugger that is connected already: one connection, as with stdio.
  static Listener of_stream(UniqueFd stream);

  Listener(Listener&&) noexcept;
  Listener& operator=(Listener&&) noexcept;
  ~Listener();

  // There is one connection, from the beginning.
  bool is_stdio() const { return stdio_; }
  // To poll; -1 with stdio, where accept() can be called at once, and once.
  int fd() const { return socket_.get(); }
  // COMM as it turned out, with the port that was taken.
  std::string comm() const { return comm_; }
  // As gdbserver says it: "Listening on port 1234".
  std::string announcement() const { return announcement_; }

  struct Accepted {
    rsp::Connection connection;
    std::string announcement;  // "Remote debugging from host 127.0.0.1, port 5678"
  };
  // Errors: kSystem, kGone when stdio was taken before.
  Result<Accepted> accept();

 private:
  Listener() = default;
  static Result<Listener> open_unix(const std::string& path);
  static Result<Listener> open_tcp(const std::string& host, const std::string& port,
                                   bool allow_remote_hosts);

  UniqueFd socket_;
  UniqueFd stream_;  // of of_stream
  bool stdio_ = false;
  std::string comm_, announcement_, unix_path_;
};

}  // namespace tailtrace
