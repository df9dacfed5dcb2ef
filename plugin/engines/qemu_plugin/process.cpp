#include "plugin/engines/qemu_plugin/process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "plugin/engines/qemu/known_qemu.h"
#include "plugin/engines/qemu_plugin/callback_arrays.h"
#include "plugin/engines/qemu_plugin/death.h"
#include "plugin/engines/qemu_plugin/flow.h"
#include "plugin/engines/qemu_plugin/session.h"
#include "plugin/engines/qemu_plugin/stub_gate.h"

namespace tailtrace {
namespace {

// Sparse files: these are limits, not costs.
constexpr std::size_t kMaxBlocks = 4 << 20;
constexpr std::size_t kMaxCode_bytes = 512 << 20;

constexpr char kUnfinished[] = ".new";

std::string system_text(const std::string& what) { return what + ": " + std::strerror(errno); }

bool refuse(const RecorderOptions& options, const std::string& what, const std::string& why,
            const std::string& fix) {
  write_new_file(options.session + "/" + kRefusalName, what + "\n" + why + "\n" + fix + "\n");
  return false;
}

bool refuse_for_space(const RecorderOptions& options, const std::string& what) {
  int error = errno;
  remove_folder(g_recorder.folder);  // the refusal itself needs space
  errno = error;
  const char* fix = kFreeSpace;
  if (errno == ENOMEM) fix = "raise the limit of addresses (ulimit -v), or ask for a smaller ring";
  if (errno == EFBIG) fix = "raise the limit of file sizes (ulimit -f)";
  return refuse(options, "cannot record in the folder " + options.session, system_text(what), fix);
}

std::string quoted(const std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string json = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20) {
      json += "\\u00";
      json += kDigits[byte >> 4];
      json += kDigits[byte & 15];
    } else {
      json += c;
    }
  }
  return json + "\"";
}

// The kernel's start time of this process tells it from a later one of the same number.
std::string start_time() {
  char text[1024] = {};
  FILE* file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return "0";
  std::size_t n = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  std::string stat(text, n);
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return "0";
  return stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

std::string folder_of(const RecorderOptions& options) {
  return options.session + "/" + std::to_string(::getpid()) + "." +
         std::to_string(options.program_index);
}

bool write_process_file(const Recorder& recorder) {
  std::string text = "{\n  \"schema\": \"tailtrace-process-1\",\n";
  text += "  \"pid\": " + std::to_string(::getpid()) + ",\n";
  text += "  \"parent\": " + std::to_string(::getppid()) + ",\n";
  text += "  \"program\": " + std::to_string(recorder.options.program_index) + ",\n";
  text += "  \"start_time\": " + start_time() + ",\n";
  text += "  \"stub\": " + std::string(recorder.options.has_stub ? "true" : "false") + ",\n";
  text += "  \"recorder\": " + quoted(TAILTRACE_VERSION) + "\n}\n";
  return write_new_file(recorder.folder + "/" + kProcessName, text);
}

// Readers see the folder when it is whole.
bool make_folder(Recorder& recorder) {
  recorder.folder = folder_of(recorder.options) + kUnfinished;
  recorder.rings.set_folder(recorder.folder);
  return ::mkdir(recorder.folder.c_str(), 0700) == 0;
}

bool show_folder(Recorder& recorder) {
  std::string shown = folder_of(recorder.options);
  if (::rename(recorder.folder.c_str(), shown.c_str()) != 0) return false;
  recorder.folder = shown;
  recorder.rings.set_folder(shown);
  return true;
}

std::string own_path() {
  Dl_info info;
  static const int kAnchor = 0;
  return ::dladdr(&kAnchor, &info) != 0 ? info.dli_fname : "";
}

}  // namespace

std::string objection_to(const qemu_info_t& info) {
  if (info.version.cur != qemu_api::kVersion)
    return "its plugin interface has version " + std::to_string(info.version.cur) +
           ", the recorder knows version " + std::to_string(qemu_api::kVersion) + " only";
  if (info.system_emulation) return "it emulates a whole machine";
  if (std::strcmp(info.target_name, "x86_64") != 0)
    return std::string("it runs programs for ") + info.target_name;
  return "";
}

bool begin_process(const RecorderOptions& options, const qemu_info_t& info) {
  Recorder& r = g_recorder;
  r.options = options;
  r.plugin_path = own_path();
  if (std::string why = objection_to(info); !why.empty())
    return refuse(options, "cannot record with this qemu", why, kTakeKnownQemu);
  if (options.has_stub && !put_up_stub_gate())
    return refuse(options, "cannot debug with this qemu",
                  "its gdb stub cannot be kept to one thread at a time", kTakeKnownQemu);
  if (options.has_stub) keep_callback_arrays();
  record_deaths();
  make_room_for_one(options.session);
  if (!make_folder(r)) {
    r.folder.clear();
    return refuse_for_space(options, "mkdir");
  }
  if (!r.rings.reserve(options.ring_records)) return refuse_for_space(options, "addresses");
  r.vcpus = static_cast<Vcpu*>(map_private((r.rings.limit() + 1) * sizeof(Vcpu)));
  if (r.vcpus == nullptr) return refuse_for_space(options, "memory");
  std::size_t blocks = share_of_addresses(kMaxBlocks * sizeof(RingBlock), 32) / sizeof(RingBlock);
  if (!r.blocks.create(r.folder + "/" + kBlocksName, blocks))
    return refuse_for_space(options, kBlocksName);
  if (!r.code.create(r.folder + "/" + kCodeName, share_of_addresses(kMaxCode_bytes, 32)))
    return refuse_for_space(options, kCodeName);
  return write_process_file(r) || refuse_for_space(options, kProcessName);
}

void show_process(bool is_recorded) {
  Recorder& r = g_recorder;
  if (is_recorded || r.options.program_index != 0) {
    if (show_folder(r) || r.options.program_index != 0) return;
    refuse_for_space(r.options, "rename");
  } else {
    refuse_for_space(r.options, "ring");
  }
  ::_exit(127);
}

namespace {

// The files of the child; it shares its parent's until they are moved.
bool move_files(Recorder& r, std::uint32_t cpu) {
  bool whole = make_folder(r);
  // All of them are moved even when one fails: nothing may go to the parent's any more.
  whole &= r.rings.move(cpu, {::getpid(), ::gettid()});
  whole &= r.code.move_to(r.folder + "/" + kCodeName);
  whole &= r.blocks.move_to(r.folder + "/" + kBlocksName);
  return whole && write_process_file(r) && show_folder(r);
}

// A child copies its files from those that it shares with its parent, where the thread that forked
// and whatever is translated would go on writing: they wait until it has, or has ended.
class ChildCopies {
 public:
  void begin() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  // In the parent. Where there is no pipe it does not wait.
  void wait() {
    if (ends_[0] < 0) return;
    ::close(ends_[1]);
    char none;
    while (::read(ends_[0], &none, 1) < 0 && errno == EINTR) continue;
    ::close(ends_[0]);
  }
  void end() {
    if (ends_[0] < 0) return;
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

 private:
  int ends_[2];
};
ChildCopies g_child_copies;

}  // namespace

void continue_in_child() {
  Recorder& r = g_recorder;
  take_down_stub_gate();
  if (t_cpu < 0) return;
  auto cpu = static_cast<std::uint32_t>(t_cpu);
  r.options.program_index = 0;
  r.options.has_stub = false;  // qemu's stub stays with the parent
  for (std::uint32_t other = 0; other < r.vcpu_count; ++other)
    if (other != cpu) r.vcpu(other).is_running = false;
  make_room_for_one(r.options.session);
  if (!move_files(r, cpu)) {
    remove_folder(r.folder);
    note_missing(r.options.session);
  }
  r.blocks.header().thread_room.store(kNoThreadLimit);  // nobody would keep the trap from it
  Flow flow(cpu);
  flow.take_time();
  std::uint64_t next = flow.open_info().end();
  flow.complete_to(next);
  flow.ring().first_position = flow.ring().head_bytes.load() / sizeof(BranchRecord);
  flow.event(0, next, RecordKind::kEnable, static_cast<std::uint16_t>(EdgeCause::kFork));
}

void follow_forks() {
  ::pthread_atfork(
      [] {
        g_recorder.lock.lock();
        g_child_copies.begin();
      },
      [] {
        g_child_copies.wait();
        g_recorder.lock.unlock();
      },
      [] {
        g_recorder.lock.unlock();
        continue_in_child();
        g_child_copies.end();
      });
}

}  // namespace tailtrace
