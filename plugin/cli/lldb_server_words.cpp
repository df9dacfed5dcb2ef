// The command line of lldb-server, as `lldb-server gdbserver --help` has it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "plugin/cli/lldb_server_command.h"

namespace tailtrace {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kShort = {
    {{"-a", "--attach"},
     {"-c", "--log-channels"},
     {"-l", "--log-file"},
     {"-r", "--reverse-connect"},
     {"-S", "--setsid"},
     {"-h", "--help"}}};
constexpr std::array<std::string_view, 6> kWithValue = {"--fd",     "--named-pipe",   "--pipe",
                                                        "--attach", "--log-channels", "--log-file"};

tl::unexpected<Error> not_understood(std::string why) {
  return fail(ErrorCode::kUsage, "cannot understand the arguments of tailtrace-lldb-server",
              std::move(why), "lldb-server gdbserver --help");
}

Result<int> parse_fd(const std::string& text) {
  int fd = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (error != std::errc() || end != text.data() + text.size() || fd < 0)
    return not_understood(fmt::format("`{}` is no descriptor", text));
  return fd;
}

Result<void> take_flag(LldbServerWords& words, const std::string& name) {
  if (name == "--setsid")
    words.new_session = true;
  else if (name == "--reverse-connect")
    words.reverse = true;
  else
    words.passed.push_back(name);  // --native-regs, and whatever the version below knows
  return {};
}

Result<void> take_value(LldbServerWords& words, const std::string& name, const std::string& value) {
  if (name == "--fd" || name == "--pipe") {
    auto fd = parse_fd(value);
    if (!fd) return fail(std::move(fd.error()));
    (name == "--fd" ? words.fd : words.port_fd) = *fd;
  } else if (name == "--named-pipe") {
    words.port_path = value;
  } else {
    words.passed.insert(words.passed.end(), {name, value});
  }
  return {};
}

}  // namespace

Result<LldbServerWords> parse_lldb_server_words(const std::vector<std::string>& args) {
  LldbServerWords words;
  std::size_t at = 0;
  for (; at < args.size() && args[at].size() > 1 && args[at].starts_with('-') && args[at] != "--";
       ++at) {
    std::size_t equals = std::min(args[at].find('='), args[at].size());
    std::string name = args[at].substr(0, equals);
    for (auto [from, to] : kShort)
      if (name == from) name = to;
    Result<void> taken;
    if (std::ranges::find(kWithValue, name) == kWithValue.end())
      taken = take_flag(words, equals < args[at].size() ? args[at] : name);
    else if (equals < args[at].size())
      taken = take_value(words, name, args[at].substr(equals + 1));
    else if (at + 1 < args.size())
      taken = take_value(words, name, args[++at]);
    else
      taken = not_understood(fmt::format("{} has no value", name));
    if (!taken) return fail(std::move(taken.error()));
  }
  bool connected = words.fd >= 0;
  if (!connected && at < args.size() && args[at] != "--") words.address = args[at++];
  if (!connected && words.address.empty())
    return not_understood("neither --fd nor [HOST]:PORT is there");
  words.passed.insert(words.passed.end(), args.begin() + static_cast<std::ptrdiff_t>(at),
                      args.end());
  if (auto& rest = words.passed; at < args.size() && args[at] != "--")
    rest.insert(rest.end() - static_cast<std::ptrdiff_t>(args.size() - at), "--");
  return words;
}

}  // namespace tailtrace
