#include "decoder/symbols/debuginfod.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "decoder/base/bytes.h"

namespace tailtrace {
namespace {

constexpr char kLibrary[] = "libdebuginfod.so.1";

// What is used of elfutils' debuginfod.h.
struct Client {
  void* (*begin)() = nullptr;
  void (*end)(void*) = nullptr;
  int (*find)(void*, const unsigned char*, int, char**) = nullptr;

  // Errors: the library is not there, or lacks something.
  static Result<Client> load() {
    void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return refuse(::dlerror());
    Client client;
    client.begin = reinterpret_cast<void* (*)()>(::dlsym(library, "debuginfod_begin"));
    client.end = reinterpret_cast<void (*)(void*)>(::dlsym(library, "debuginfod_end"));
    client.find = reinterpret_cast<int (*)(void*, const unsigned char*, int, char**)>(
        ::dlsym(library, "debuginfod_find_debuginfo"));
    if (client.begin == nullptr || client.end == nullptr || client.find == nullptr)
      return refuse(std::string(kLibrary) + " lacks a function");
    return client;
  }

 private:
  static tl::unexpected<Error> refuse(std::string why) {
    return fail(ErrorCode::kUsage, "cannot fetch debug information", std::move(why),
                "apt-get install libdebuginfod1",
                "without --debuginfod, what is installed is used");
  }
};

Result<std::string> find(const Client& client, void* session, const std::string& build_id) {
  const auto id = from_hex(build_id);
  if (!id) return fail(ErrorCode::kGone, "there is no build id " + build_id);
  char* found = nullptr;
  const int fd = client.find(session, id->data(), static_cast<int>(id->size()), &found);
  const std::unique_ptr<char, void (*)(void*)> path(found, &std::free);
  if (fd == -ENOENT)
    return fail(ErrorCode::kGone, "no server has debug information of build id " + build_id);
  if (fd < 0)
    return fail(system_error("cannot fetch debug information of build id " + build_id, -fd));
  const UniqueFd closed(fd);
  return std::string(path ? path.get() : "");
}

}  // namespace

Result<DebugFetch> ask_debuginfod() {
  const char* servers = std::getenv("DEBUGINFOD_URLS");
  if (servers == nullptr || *servers == '\0')
    return fail(ErrorCode::kUsage, "cannot fetch debug information",
                "DEBUGINFOD_URLS names no server",
                "export DEBUGINFOD_URLS=https://debuginfod.debian.net",
                "without --debuginfod, what is installed is used");
  Result<Client> client = Client::load();
  if (!client) return fail(std::move(client.error()));
  const std::shared_ptr<void> session(client->begin(), client->end);
  if (!session)
    return fail(ErrorCode::kSystem, "cannot fetch debug information", "its client cannot begin");
  return DebugFetch([client = *client, session](const std::string& build_id) {
    return find(client, session.get(), build_id);
  });
}

}  // namespace tailtrace
