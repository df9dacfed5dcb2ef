#include "plugin/server/below/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "decoder/base/unix_socket.h"

namespace tailtrace {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr int kBacklog = 1;
constexpr int kMaxPort = 65535;

struct AddressFreer {
  void operator()(addrinfo* info) const { ::freeaddrinfo(info); }
};
using AddressList = std::unique_ptr<addrinfo, AddressFreer>;

// With why and fix where it is in use.
Error cannot_bind(int error, std::string why, std::string fix) {
  const bool in_use = error == EADDRINUSE;
  // The words are gdbserver's: programs that start one wait for them.
  return {error == EACCES ? ErrorCode::kPermission : ErrorCode::kSystem,
          "Can't bind address: " + std::string(std::strerror(error)) + ".",
          in_use ? std::move(why) : "",
          in_use ? std::move(fix) : "",
          {}};
}

bool is_loopback(const addrinfo& info) {
  if (info.ai_family == AF_INET) {
    auto address = reinterpret_cast<const sockaddr_in*>(info.ai_addr)->sin_addr;
    return (ntohl(address.s_addr) >> 24) == 127;
  }
  if (info.ai_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(info.ai_addr)->sin6_addr);
  return false;
}

struct Endpoint {
  std::string host, port;
};

Endpoint describe(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return {host, port};
}

// Numbers beyond 16 bits would be cut without a word.
bool is_port(const std::string& port) {
  if (port.empty()) return false;
  if (port.find_first_not_of("0123456789") != std::string::npos) return true;  // a service's name
  return port.size() <= 5 && std::stoi(port) <= kMaxPort;
}

tl::unexpected<Error> no_port(const std::string& host, const std::string& port) {
  return fail(ErrorCode::kUsage, fmt::format("cannot listen on {}:{}", host, port),
              fmt::format("`{}` is no port", port),
              fmt::format("a number from 1 to {}, or 0 for any that is free", kMaxPort));
}

Result<AddressList> resolve(const std::string& host, const std::string& port) {
  if (!is_port(port)) return no_port(host, port);
  addrinfo hint{};
  hint.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const char* name = host.empty() ? "127.0.0.1" : host.c_str();
  const int error = ::getaddrinfo(name, port.c_str(), &hint, &found);
  if (error == EAI_SERVICE) return no_port(host, port);
  if (error != 0)
    return fail(ErrorCode::kUsage, fmt::format("cannot listen on {}:{}", host, port),
                fmt::format("cannot resolve name: {}", ::gai_strerror(error)),
                "name an address of this machine, such as 127.0.0.1:PORT");
  return AddressList(found);
}

}  // namespace

Listener::Listener(Listener&& other) noexcept { *this = std::move(other); }

Listener& Listener::operator=(Listener&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(stream_, other.stream_);
  std::swap(stdio_, other.stdio_);
  comm_.swap(other.comm_);
  announcement_.swap(other.announcement_);
  unix_path_.swap(other.unix_path_);
  return *this;
}

Listener::~Listener() {
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

Result<Listener> Listener::open(const std::string& comm, bool allow_remote_hosts) {
  if (comm == "-" || comm == "stdio") {
    Listener listener;
    listener.stdio_ = true;
    listener.comm_ = comm;
    return listener;
  }
  if (comm.starts_with(kUnixPrefix)) return open_unix(comm.substr(kUnixPrefix.size()));
  std::size_t colon = comm.rfind(':');
  if (colon == std::string::npos)
    return fail(ErrorCode::kUsage, fmt::format("cannot listen on \"{}\"", comm),
                "it is none of HOST:PORT, :PORT, -, stdio, unix:PATH", "use :0 for any free port");
  std::string host = comm.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return open_tcp(host, comm.substr(colon + 1), allow_remote_hosts);
}

Listener Listener::of_stream(UniqueFd stream) {
  Listener listener;
  listener.stdio_ = true;
  listener.stream_ = std::move(stream);
  return listener;
}

Result<Listener> Listener::open_unix(const std::string& path) {
  const auto address = unix_address(path);
  if (!address)
    return fail(ErrorCode::kUsage, fmt::format("cannot listen on {}", path),
                fmt::format("a path of 1 to {} bytes is needed", kMaxUnixPath_bytes),
                "name a shorter path");
  Listener listener;
  listener.socket_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  mode_t old = ::umask(0177);
  int bound = ::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
  int error = errno;
  ::umask(old);
  // It stays behind a server that was killed.
  if (bound != 0)
    return fail(cannot_bind(error, path + " is there already",
                            "choose another name, or remove it where nobody listens"));
  listener.unix_path_ = path;
  if (::listen(listener.fd(), kBacklog) != 0) return fail(system_error("Can't listen on socket"));
  listener.comm_ = std::string(kUnixPrefix) + path;
  listener.announcement_ = "Listening on socket " + path;
  return listener;
}

Result<Listener> Listener::open_tcp(const std::string& host, const std::string& port,
                                    bool allow_remote_hosts) {
  auto addresses = resolve(host, port);
  if (!addresses) return fail(std::move(addresses.error()));
  const addrinfo& info = **addresses;
  if (!allow_remote_hosts && !is_loopback(info))
    return fail(ErrorCode::kUsage, fmt::format("will not listen on {}", host),
                "whoever connects can run any program as you, and it is no loopback address",
                "use :" + port + " and a tunnel, or --allow-remote");
  Listener listener;
  listener.socket_ = UniqueFd(
      ::socket(info.ai_family, info.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info.ai_protocol));
  if (!listener.socket_) return fail(system_error("Can't open socket"));
  int on = 1;
  ::setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.fd(), info.ai_addr, info.ai_addrlen) != 0 ||
      ::listen(listener.fd(), kBacklog) != 0) {
    const std::string what = host + ":" + port;
    return fail(cannot_bind(errno, "somebody listens on " + what + " already",
                            "choose another than " + what + ", or port 0"));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&bound), &size);
  Endpoint endpoint = describe(bound, size);
  listener.comm_ = host + ":" + endpoint.port;
  listener.announcement_ = "Listening on port " + endpoint.port;
  return listener;
}

Result<Listener::Accepted> Listener::accept() {
  if (stream_) return Accepted{rsp::Connection(std::move(stream_)), "Remote debugging"};
  if (stdio_) {
    // Copies: closing the connection leaves the process its own descriptors.
    UniqueFd in(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    UniqueFd out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!in || !out) return fail(system_error("cannot use stdin and stdout"));
    return Accepted{rsp::Connection(std::move(in), std::move(out)), "Remote debugging using stdio"};
  }
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  UniqueFd stream(::accept4(fd(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC));
  if (!stream) return fail(system_error("cannot accept a debugger"));
  if (peer.ss_family == AF_UNIX)
    return Accepted{rsp::Connection(std::move(stream)), "Remote debugging from " + comm_};
  // A packet is one write each; waiting to fill segments only costs time.
  int on = 1;
  ::setsockopt(stream.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Endpoint from = describe(peer, size);
  return Accepted{rsp::Connection(std::move(stream)),
                  fmt::format("Remote debugging from host {}, port {}", from.host, from.port)};
}

}  // namespace tailtrace
