// A debugger and a server below that say anything: the server between them ends, and does not
// break.
//
// An input is lines. `<` a packet from the debugger, `!` bytes from it as they are, `>` what the
// server below says next (`>%`: a notification); other lines are dropped.
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <deque>

#include "plugin/engines/step/step_engine.h"
#include "plugin/server/below/listener.h"
#include "plugin/server/proxy.h"
#include "tests/fuzz/fuzz_driver.h"
#include "tests/support/fake_link.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxInput_bytes = 1 << 15;  // well inside what a socket holds

// Says one thing to each request; is gone when it has nothing more to say.
class ScriptedLink final : public FakeLink {
 public:
  explicit ScriptedLink(std::deque<std::string> script)
      : FakeLink([this](const std::string&) { return next_words(); }), script_(std::move(script)) {}

 private:
  std::vector<std::string> next_words() {
    std::vector<std::string> words;
    bool notification = true;
    while (notification && !script_.empty()) {
      notification = script_.front().starts_with('%');
      words.push_back(std::move(script_.front()));
      script_.pop_front();
    }
    is_gone |= notification;
    return words;
  }

  std::deque<std::string> script_;
};

struct Scene {
  std::string debugger;
  std::deque<std::string> below;
};

Scene scene_of(std::string_view text) {
  Scene scene;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with('<')) rsp::append_frame(scene.debugger, line.substr(1));
    if (line.starts_with('!')) scene.debugger += line.substr(1);
    if (line.starts_with('>')) scene.below.emplace_back(line.substr(1));
  }
  return scene;
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<Bytes> fuzz_seeds() {
  std::string registers = std::string(2 * 128, '0') + "0010000000000000" + std::string(400, '0');
  std::string begin =
      "<QStartNoAckMode\n<qSupported:multiprocess+\n>PacketSize=3fff;multiprocess+;QThreadEvents+"
      "\n";
  std::string enable =
      "<Hgp7ffffffe.1\n>OK\n<Qbtrace-conf:bts:size=0x1000\n<Qbtrace:bts\n>" + registers + "\n";
  std::string step =
      "<vCont;s\n>T0510:0110000000000000;thread:p7ffffffe.1;\n>" + std::string(8192, '9') + "\n";
  return {
      bytes_of(begin + enable + step + "<qXfer:btrace:read:all:0,1000\n<Qbtrace:off\n<k\n"),
      bytes_of(begin + "<QNonStop:1\n>OK\n" + enable +
               "<vCont;c:p7ffffffe.1\n>%Stop:T0510:0110000000000000;thread:p7ffffffe.1;\n>OK\n"
               "<vStopped\n>OK\n<?\n>T05thread:p7ffffffe.1;\n>OK\n"),
      bytes_of(begin + enable +
               "<vCont;c\n>T05create:;thread:p7ffffffe.2;\n>OK\n"
               "<qRcmd,7461696c747261636520696e666f\n<Hgp7ffffffe.3\n>E01\n<Qbtrace:pt\n"),
      bytes_of(
          "!$?#3f\x03+-$OK#00\n>T05thread:01;\n<jLLDBTraceSupported\n<vRun;;\n>W00\n<D;1\n>OK\n"),
      // LLDB writes a register of a server below that knows all at once only.
      bytes_of("<qSupported:xmlRegisters=i386,arm\n>PacketSize=3fff;QThreadEvents+\n"
               "<P1=0011223344556677\n"
               ">l<target><reg bitsize=\"64\"/><reg bitsize=\"64\" regnum=\"1\"/></target>\n>" +
               std::string(32, '0') + "\n>OK\n"),
  };
}

void fuzz_one(ByteSpan input) {
  if (input.size() > kMaxInput_bytes) return;
  Scene scene = scene_of(as_text(input));
  int ends[2];
  bool made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0;
  assert(made);
  (void)made;
  UniqueFd debugger(ends[0]);
  Listener listener = Listener::of_stream(UniqueFd(ends[1]));
  (void)!::write(debugger.get(), scene.debugger.data(), scene.debugger.size());
  ::shutdown(debugger.get(), SHUT_WR);
  EndSignals signals;
  Below below(std::make_unique<ScriptedLink>(std::move(scene.below)), signals);
  static TempFolder folder;
  StepEngine engine(folder.path(), {64},
                    [&](ThreadId thread, Address address, std::span<std::uint8_t> out) {
                      return below.read_memory(thread, address, out);
                    });
  Recorder recorder(below, engine, &engine);
  ServeOptions options;
  options.ring_records = 64;
  auto status = Proxy(options, listener, below, recorder, signals).run();
  assert(status);
  (void)status;
}

}  // namespace tailtrace
