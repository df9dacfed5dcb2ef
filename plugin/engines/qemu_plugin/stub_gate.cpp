#include "plugin/engines/qemu_plugin/stub_gate.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/engines/protocol_signals.h"
#include "plugin/engines/qemu/session_format.h"
#include "plugin/engines/qemu_plugin/call_catch.h"
#include "plugin/engines/qemu_plugin/call_trap.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/imports.h"
#include "plugin/engines/qemu_plugin/interrupted_call.h"
#include "plugin/engines/qemu_plugin/kept_handler.h"
#include "plugin/engines/qemu_plugin/leave_block.h"
#include "plugin/engines/qemu_plugin/lone_run.h"
#include "plugin/engines/qemu_plugin/on_block.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/signal_frame.h"
#include "plugin/engines/qemu_plugin/signal_info.h"
#include "plugin/engines/qemu_plugin/spare_memory.h"
#include "plugin/engines/qemu_plugin/step_aside.h"
#include "plugin/engines/qemu_plugin/stub_connection.h"
#include "plugin/engines/qemu_plugin/unheard.h"
#include "plugin/engines/qemu_plugin/watch.h"

constinit std::atomic<std::uint64_t> tailtrace_all_slow{0};

namespace tailtrace {
namespace {

std::mutex g_queue_lock;
std::condition_variable g_queue_moved;
std::vector<unsigned> g_queue;              // turns of those that wait to go in
constinit std::atomic<unsigned> g_came{0};  // how often threads came to the gate: the next turn
constinit thread_local unsigned t_turn = 0;
constinit std::atomic<unsigned> g_resumes{0};
constinit std::atomic<int> g_inside{0};  // thread that is inside or has executed nothing since
// Whether nobody else may execute: while a thread is inside, or makes an access that was undone.
// One may be to step aside.
constexpr int kStandsInside = 1, kAccesses = 2, kOneStepsAside = kStandsInside | 4;
constinit std::atomic<int> g_still{0};
constinit std::atomic<std::int32_t> g_aside_tid{0};
std::size_t g_ending_count = 0;  // threads that end; guarded by the queue's lock
pthread_key_t g_ending_key;      // of a value that they have

// How the stub begins the reply that tells of a stop.
constexpr std::string_view kStopFormat = "T%02xthread:";
constexpr int kMaxLooks = 1000;
constexpr timespec kBetweenLooks = {0, 100'000};

// Where this thread stands in the stub, and stood when it was told to run.
constinit thread_local std::uint64_t t_stopped_pc = 0, t_left_pc = 0;

// To its last stop, and the signal of that.
constinit thread_local OwnAnswer t_answer = OwnAnswer::kNone;
constinit thread_local int t_signal = 0;

void let_others_go() {
  g_still.store(0);
  g_still.notify_all();
}

void have_queue_look() {
  std::lock_guard lock(g_queue_lock);
  g_queue_moved.notify_all();
}

void leave() {
  keep_spare_memory();
  end_first_of_lone_run();
  let_others_go();
  // Those that are in the way of a lone run have yet to come to the gate.
  if (!runs_alone() && !does_another_run_alone()) tailtrace_all_slow.store(0);
  g_inside.store(0);
  have_queue_look();
}

bool does_another_execute() {
  for (std::uint32_t cpu = 0; cpu < g_recorder.vcpu_count; ++cpu) {
    const Vcpu& other = g_recorder.vcpu(cpu);
    if (static_cast<int>(cpu) != t_cpu && other.is_running && other.executes) return true;
  }
  return false;
}

// 0: not known.
std::uint64_t guest_pc() {
  if (t_cpu < 0) return 0;
  const std::uint64_t* registers = g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu)).registers;
  return registers != nullptr ? registers[kRip] : 0;
}

// Whether this thread was told to run and has executed nothing since.
bool has_not_moved() { return g_inside.load() == ::gettid() && g_still.load() == 0; }

// A thread comes to the end of its block in no time, unless it has no processor.
void wait_until_others_stand() {
  for (int i = 0; i < kMaxLooks && does_another_execute(); ++i)
    ::nanosleep(&kBetweenLooks, nullptr);
}

// At the very end of a thread. The destructors of a program's first thread do not run where that
// ends before others, but those of keys do.
void end_ending(void*) {
  std::lock_guard lock(g_queue_lock);
  --g_ending_count;
  g_queue_moved.notify_all();
}

bool may_end() {
  const int inside = g_inside.load();
  return inside == 0 || inside == ::gettid();
}

void begin_ending() {
  std::unique_lock lock(g_queue_lock);
  g_queue_moved.wait(lock, may_end);
  if (::pthread_setspecific(g_ending_key, &g_ending_key) == 0) ++g_ending_count;
}

// One that runs alone goes in before those that stopped before it.
bool is_next() {
  if (g_inside.load() != 0 || g_ending_count != 0) return false;
  return runs_alone() || (!does_another_run_alone() && g_queue.front() == t_turn);
}

void go_in() {
  std::unique_lock lock(g_queue_lock);
  t_turn = g_came.fetch_add(1);
  g_queue.push_back(t_turn);
  std::int32_t own = ::gettid();
  g_aside_tid.compare_exchange_strong(own, 0);
  g_queue_moved.wait(lock, is_next);
  std::erase(g_queue, t_turn);
  g_inside.store(::gettid());
}

// One that was told to run and stops where it stood goes behind those that wait: it may do so again
// and again, until one of them is heard.
void enter() {
  if (t_cpu >= 0) g_recorder.vcpu(static_cast<std::uint32_t>(t_cpu)).executes = false;
  if (has_not_moved()) leave();
  if (g_inside.load() != ::gettid()) go_in();
  tailtrace_all_slow.store(kSlowBlock);
}

void have_others_stand() {
  g_still.store(kStandsInside);
  wait_until_others_stand();
}

// From the list that qemu has, too.
void wait_until_gone(std::int32_t tid) {
  for (int i = 0; i < kMaxLooks && ::tgkill(::getpid(), tid, 0) == 0; ++i)
    ::nanosleep(&kBetweenLooks, nullptr);
}

// As do those that wait before a block or at a system call.
void wait_while_one_is_inside() {
  const int still = g_still.load();
  if ((still & kStandsInside) != 0) g_still.wait(still);
}

bool is_held(std::int32_t tid) {
  for (std::uint32_t cpu = 0; cpu < g_recorder.vcpu_count; ++cpu) {
    const RingHeader& ring = *ring_of(cpu);
    if (ring.tid.load() == tid && ring.held_at.load() != 0) return true;
  }
  return false;
}

void have_step_aside(std::int32_t tid) {
  if (!is_held(tid)) return;
  g_aside_tid.store(tid);
  g_still.store(kOneStepsAside);
  g_still.notify_all();
  for (int i = 0; i < kMaxLooks && g_aside_tid.load() != 0; ++i)
    ::nanosleep(&kBetweenLooks, nullptr);
  g_aside_tid.store(0);
  g_still.store(kStandsInside);
  g_still.notify_all();
  wait_until_others_stand();
}

void have_stepped_step_aside() {
  const SteppedThreads& stepped = g_recorder.blocks.header().stepped;
  for (std::size_t i = 0; i < std::min<std::size_t>(stepped.count, kMaxSteppedThreads); ++i)
    have_step_aside(stepped.tids[i]);
}

// The one instruction that this thread executes now makes an access that was undone, which would be
// mixed up with theirs (watch.h). Then it stops.
void access_alone() {
  g_still.store(kAccesses);
  wait_until_others_stand();
}

// False: an access lasts, for one across cache lines needs the others to leave their blocks
// (EXCP_ATOMIC), and has to be made beside them.
bool wait_for_access() {
  for (int i = 0; i < kMaxLooks && g_still.load() == kAccesses; ++i)
    ::nanosleep(&kBetweenLooks, nullptr);
  return g_still.load() != kAccesses;
}

// What is behind the mark of a packet's beginning.
std::string_view without_frame(std::string_view packet) {
  const std::size_t mark = packet.find('$');
  return mark == packet.npos ? std::string_view() : packet.substr(mark + 1);
}

// Whether the stub will let its thread run after this: a request to run, to go away or to end, or
// the end of the connection.
bool ends_standing(std::string_view packet) {
  if (packet.find('$') == std::string_view::npos) return packet.empty();
  const std::string_view request = without_frame(packet);
  if (request.starts_with("vCont;") || request.starts_with("vKill")) return true;
  return !request.empty() && std::string_view("cCsSDk").find(request[0]) != std::string_view::npos;
}

// Whether a request to run has a thread take a signal along.
bool passes_signal(std::string_view request) {
  return request.starts_with('C') || request.starts_with('S') ||
         request.find(";C") != request.npos || request.find(";S") != request.npos;
}

// What the reply says of the stop before it names the thread, for the debug server.
struct StopWords {
  std::string text;
  bool is_ours;  // the recorder stopped it
};
StopWords stop_words(int signal, bool stands) {
  const std::string before = watch_stop_word() + caught_word();
  std::string behind;
  if (is_late_bus(signal)) behind += "undone:;";
  if (is_call_trap(signal)) behind += "called:;";
  if (is_told_of_room(signal)) behind += "create:;";
  const bool is_ours = !before.empty() || !behind.empty();
  if (is_about_to_fork()) behind += "runs:;";
  // One that stands has not made the access that it was to step over, and may not come back to it
  // in a step: a signal is told of.
  return {(stands ? "stands:;" : before) + behind, is_ours};
}

// The bytes of it, for the debug server.
std::string info_word(const std::optional<siginfo_t>& info) {
  if (!info) return {};
  std::string word = "siginfo:";
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&*info);
  for (std::size_t i = 0; i < sizeof *info; ++i)
    for (std::uint8_t half : {bytes[i] >> 4, bytes[i] & 15}) word += "0123456789abcdef"[half];
  return word + ";";
}

// What the stub says of a stop, as a format; when it may say so.
std::string stop_format(int signal) {
  const std::uint64_t pc = guest_pc();
  const unsigned resumes = g_resumes.load();
  // It may have entered a handler.
  const bool has_stood = has_not_moved() && pc == t_left_pc;
  put_back_handler();  // one that stands in the stub may be about to go by it
  enter();
  select_own_thread();
  if (!was_let_go()) renew_unheard(g_came.load());
  t_signal = signal;
  t_stopped_pc = pc;
  const std::int32_t ended = take_owed_end();
  const bool has_only_waited = has_stepped_aside(signal);
  if (has_only_waited && ended != 0 && !was_let_go()) {
    t_answer = OwnAnswer::kNone;
    have_others_stand();
    wait_until_gone(ended);
    return "T%02xended:;thread:";
  }
  // A debugger that has changed its program counter while it waited wants it to run from there.
  if (has_only_waited || (signal == SIGTRAP && guest_pc() != pc)) {
    stop_words(signal, false);
    t_answer = OwnAnswer::kGoOn;
    return std::string(kStopFormat);
  }
  const bool was_told_to_run = runs_alone() && g_resumes.load() != resumes;
  StopWords words = stop_words(signal, was_told_to_run || has_stood);
  t_answer = answer_to_stop({signal, words.is_ours, words.text.empty(), t_turn});
  const auto info = take_signal_info(system_signal(static_cast<std::uint8_t>(signal)));
  if (t_answer == OwnAnswer::kNone) {
    if (!words.is_ours) words.text += info_word(info);
    if (signal == SIGTRAP && has_trapped(pc)) words.text += "trapped:;";
    have_others_stand();
    end_lone_run();
    meet_handler_at_stop();
  }
  return "T%02x" + words.text + "thread:";
}

// g_string_printf(string, format, ...) of GLib.
void print_string(void* string, const char* format, ...) {
  using Print = void (*)(void*, const char*, std::va_list);
  static const auto print = reinterpret_cast<Print>(::dlsym(RTLD_DEFAULT, "g_string_vprintf"));
  std::va_list arguments;
  va_start(arguments, format);
  if (format == kStopFormat) {
    std::va_list first;
    va_copy(first, arguments);
    const std::string stop = stop_format(va_arg(first, int));
    va_end(first);
    print(string, stop.c_str(), arguments);
  } else {
    print(string, format, arguments);
  }
  va_end(arguments);
}

// The thread was told to run.
void go(bool has_signal) {
  settle_interrupted_call(has_signal);
  t_left_pc = guest_pc();
  let_others_go();
}

// A debugger sets it to have the program call a function, and to have it go on behind that.
void record_moved_pc() {
  const std::uint64_t pc = guest_pc(), before = std::exchange(t_stopped_pc, pc);
  if (before == pc || before == 0) return;
  const bool has_faulted = is_fault(system_signal(static_cast<std::uint8_t>(t_signal)));
  Flow(static_cast<std::uint32_t>(t_cpu)).move(before, pc, has_faulted);
}

// What the debugger would say to a stop that it is not told of.
ssize_t own_request(void* to, std::size_t size_bytes) {
  char request[8] = "c";
  if (t_answer == OwnAnswer::kPassSignal) std::snprintf(request, sizeof request, "C%02x", t_signal);
  unsigned sum = 0;
  for (const char* at = request; *at != '\0'; ++at) sum += static_cast<unsigned char>(*at);
  const int n = std::snprintf(static_cast<char*>(to), size_bytes, "$%s#%02x", request, sum & 0xff);
  record_moved_pc();
  go(t_answer == OwnAnswer::kPassSignal);
  return n;
}

// The others must run before the stub does what it was asked: it may need them to leave their
// blocks.
ssize_t read_request(int fd, void* to, std::size_t size_bytes) {
  const bool is_inside = g_inside.load() == ::gettid();
  if (is_inside && t_answer != OwnAnswer::kNone) return own_request(to, size_bytes);
  const ssize_t n = ::read(fd, to, size_bytes);
  if (!is_inside) return n;
  const std::string_view request(static_cast<const char*>(to),
                                 static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  note_breakpoint(without_frame(request));
  if (const std::int32_t tid = thread_of_registers(without_frame(request))) have_step_aside(tid);
  if (ends_standing(request)) {
    const bool is_code_old = renew_watches();
    renew_caught_calls();
    renew_unheard(g_came.load());
    renew_lone_run(is_code_old);
    g_resumes.fetch_add(1);
    raise_handler_trap();
    have_stepped_step_aside();
    go(passes_signal(without_frame(request)));
  }
  return n;
}

// Nothing is said of a stop that the debugger is not told of, nor to one that has let go.
ssize_t send_words(int fd, const void* from, std::size_t size_bytes, int flags) {
  if (t_answer != OwnAnswer::kNone || was_let_go()) return static_cast<ssize_t>(size_bytes);
  if (g_inside.load() == ::gettid()) record_moved_pc();
  return ::send(fd, from, size_bytes, flags | MSG_NOSIGNAL);
}

// For the acknowledgement of a reply. Without a connection the stub asks for nothing more.
ssize_t receive(int fd, void* to, std::size_t size_bytes, int flags) {
  ssize_t n = 0;
  if (t_answer == OwnAnswer::kNone && !was_let_go()) {
    n = ::recv(fd, to, size_bytes, flags);
  } else if (t_answer == OwnAnswer::kGoOn || t_answer == OwnAnswer::kPassSignal) {
    *static_cast<char*>(to) = '+';
    n = 1;
  }
  const int error = errno;
  if (g_inside.load() == ::gettid() && (n == 0 || (n < 0 && error != EINTR))) let_others_go();
  errno = error;
  return n;
}

}  // namespace

bool put_up_stub_gate() {
  return ::dlsym(RTLD_DEFAULT, "g_string_vprintf") != nullptr &&
         ::pthread_key_create(&g_ending_key, end_ending) == 0 &&
         replace_import("g_string_printf", reinterpret_cast<void*>(&print_string)) &&
         replace_import("recv", reinterpret_cast<void*>(&receive)) &&
         replace_import("send", reinterpret_cast<void*>(&send_words)) &&
         replace_import("read", reinterpret_cast<void*>(&read_request)) && keep_stub_connection() &&
         keep_signal_infos();
}

void pass_stub_gate(std::uint32_t cpu, std::uint64_t pc) {
  Vcpu& vcpu = g_recorder.vcpu(cpu);
  if (vcpu.executes && tailtrace_all_slow.load() == 0) return;
  if (g_inside.load() == ::gettid()) {
    if (is_undone_access(pc)) return access_alone();
    t_answer = OwnAnswer::kNone;
    leave();
  }
  RingHeader& ring = *ring_of(cpu);
  for (bool goes_beside = false;;) {
    vcpu.executes = true;
    const bool is_in_way =
        does_another_run_alone() || g_aside_tid.load() == ::gettid() || (pc != 0 && is_end_owed());
    if (!is_in_way && (goes_beside || g_still.load() == 0)) break;
    if (is_in_way && pc != 0) return step_aside(cpu, pc);
    vcpu.executes = false;
    wait_for_lone_run();
    ring.held_at.store(pc);
    goes_beside = !wait_for_access();
    wait_while_one_is_inside();
    ring.held_at.store(0);
  }
  if (runs_alone() && !does_another_execute()) tailtrace_all_slow.store(0);
}

void wait_at_stub_gate(std::uint32_t cpu) {
  g_recorder.vcpu(cpu).executes = false;
  while (does_another_run_alone() || (g_still.load() & kStandsInside) != 0) {
    wait_for_lone_run();
    wait_while_one_is_inside();
  }
}

void end_at_stub_gate() {
  if (!g_recorder.options.has_stub) return;
  begin_ending();
  if (!end_lone_thread()) return;
  tailtrace_all_slow.store(kSlowBlock);
  have_queue_look();
}

void take_down_stub_gate() {
  give_up_stub_connection();
  forget_watches();
  forget_caught_calls();
  forget_unheard();
  forget_lone_run();
  t_answer = OwnAnswer::kNone;
  g_queue.clear();
  g_ending_count = 0;
  g_came.store(0);
  g_still.store(0);
  g_inside.store(0);
  tailtrace_all_slow.store(0);
}

}  // namespace tailtrace
