// The plugin's door: qemu looks for these two symbols.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "plugin/engines/qemu_plugin/exec.h"
#include "plugin/engines/qemu_plugin/exec_path.h"
#include "plugin/engines/qemu_plugin/maps_log.h"
#include "plugin/engines/qemu_plugin/process.h"
#include "plugin/engines/qemu_plugin/qemu_api.h"
#include "plugin/engines/qemu_plugin/recorder.h"
#include "plugin/engines/qemu_plugin/spare_memory.h"
#include "plugin/engines/qemu_plugin/syscalls.h"
#include "plugin/engines/qemu_plugin/threads.h"
#include "plugin/engines/qemu_plugin/translate.h"

namespace tailtrace {
namespace {

bool read_option(RecorderOptions& options, const char* argument) {
  const char* value = std::strchr(argument, '=');
  if (value == nullptr) return false;
  std::string name(argument, value++);
  if (name == "session") options.session = value;
  if (name == "records") options.ring_records = std::strtoull(value, nullptr, 10);
  if (name == "program")
    options.program_index = static_cast<std::uint32_t>(std::strtoul(value, nullptr, 10));
  if (name == "stub") options.has_stub = std::strcmp(value, "on") == 0;
  if (name == "held") keep_descriptor_from_next(std::atoi(value));
  return name == "session" || name == "held" || name == "records" || name == "program" ||
         name == "stub";
}

// The session has ended with its server, and children of the program live on: qemu just runs them.
bool is_left_alone(const RecorderOptions& options) {
  return !options.has_stub && ::access(options.session.c_str(), F_OK) != 0;
}

void register_callbacks(qemu_plugin_id_t id) {
  qemu_plugin_register_vcpu_init_cb(id, [](qemu_plugin_id_t, unsigned cpu) { make_thread(cpu); });
  qemu_plugin_register_vcpu_exit_cb(id, [](qemu_plugin_id_t, unsigned cpu) { end_thread(cpu); });
  qemu_plugin_register_vcpu_tb_trans_cb(
      id, [](qemu_plugin_id_t, qemu_plugin_tb* tb) { translate(tb); });
  qemu_plugin_register_flush_cb(id, [](qemu_plugin_id_t) { forget_translations(); });
  qemu_plugin_register_vcpu_syscall_cb(
      id, [](qemu_plugin_id_t, unsigned cpu, std::int64_t number, std::uint64_t a, std::uint64_t b,
             std::uint64_t c, std::uint64_t d, std::uint64_t e, std::uint64_t f, std::uint64_t,
             std::uint64_t) {
        enter_syscall(cpu, number, {a, b, c, d, e, f});
      });
  qemu_plugin_register_vcpu_syscall_ret_cb(
      id, [](qemu_plugin_id_t, unsigned cpu, std::int64_t number, std::int64_t result) {
        leave_syscall(cpu, number, result);
      });
  qemu_plugin_register_atexit_cb(
      id, [](qemu_plugin_id_t, void*) { end_process(RingState::kProcessExited); }, nullptr);
}

}  // namespace
}  // namespace tailtrace

extern "C" {

__attribute__((visibility("default"))) int qemu_plugin_version = tailtrace::qemu_api::kVersion;

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t* info, int argc,
                                                               char** argv) {
  tailtrace::RecorderOptions options;
  for (int i = 0; i < argc; ++i)
    if (!tailtrace::read_option(options, argv[i])) return -1;
  if (options.session.empty()) return -1;
  if (!tailtrace::begin_process(options, *info)) return tailtrace::is_left_alone(options) ? 0 : -1;
  tailtrace::keep_spare_memory();
  tailtrace::note_own_mappings();
  tailtrace::register_callbacks(id);
  tailtrace::follow_forks();
  tailtrace::remember_qemu_options();
  return 0;
}
}
