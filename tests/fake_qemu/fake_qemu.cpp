// A qemu-x86_64 that does nothing but load its plugin, as a qemu of another sort or version would:
//
//   FAKE_QEMU_INTERFACE=N  its plugin interface has this version (1)
//   FAKE_QEMU_MINIMUM=N    it takes no plugin made for an older one (1)
//   FAKE_QEMU_TARGET=NAME  it runs programs for this processor (x86_64)
//
// Ends with status 0 when the plugin was installed.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "plugin/engines/qemu_plugin/qemu_api.h"

// What the plugin needs of qemu.
extern "C" {
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb) {}
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb) {}
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_tb_cb) {}
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_exec_cb,
                                          qemu_plugin_cb_flags, void*) {}
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_plugin_syscall_cb) {}
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_plugin_syscall_ret_cb) {}
void qemu_plugin_register_flush_cb(qemu_plugin_id_t, qemu_plugin_simple_cb) {}
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb, void*) {}
std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*) { return 0; }
std::uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*) { return 0; }
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t) { return nullptr; }
const void* qemu_plugin_insn_data(const qemu_plugin_insn*) { return nullptr; }
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*) { return 0; }
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*) { return 0; }
void* qemu_plugin_insn_haddr(const qemu_plugin_insn*) { return nullptr; }
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_mem_cb, qemu_plugin_cb_flags,
                                      qemu_plugin_mem_rw, void*) {}
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t) { return 0; }
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t) { return false; }
}

namespace {

int number_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::atoi(value) : 1;
}

// "FILE,NAME=VALUE,...", where two commas stand for one.
std::vector<std::string> split(const char* option) {
  std::vector<std::string> parts(1);
  for (const char* c = option; *c != '\0'; ++c) {
    if (*c != ',' || c[1] == ',')
      parts.back() += *c == ',' ? *c++ : *c;
    else
      parts.emplace_back();
  }
  return parts;
}

int load(std::vector<std::string> parts) {
  void* plugin = ::dlopen(parts[0].c_str(), RTLD_NOW);
  if (plugin == nullptr) {
    std::fprintf(stderr, "Could not load plugin %s: %s\n", parts[0].c_str(), ::dlerror());
    return 1;
  }
  int made_for = *static_cast<int*>(::dlsym(plugin, "qemu_plugin_version"));
  if (made_for < number_of("FAKE_QEMU_MINIMUM")) {
    std::fprintf(stderr,
                 "Could not load plugin %s: plugin requires API version %d, but this QEMU supports "
                 "only a minimum version of %d\n",
                 parts[0].c_str(), made_for, number_of("FAKE_QEMU_MINIMUM"));
    return 1;
  }
  using Install = int (*)(qemu_plugin_id_t, const qemu_info_t*, int, char**);
  auto install = reinterpret_cast<Install>(::dlsym(plugin, "qemu_plugin_install"));
  const char* target = std::getenv("FAKE_QEMU_TARGET");
  qemu_info_t info{};
  info.target_name = target != nullptr ? target : "x86_64";
  info.version.cur = number_of("FAKE_QEMU_INTERFACE");
  std::vector<char*> arguments;
  for (std::size_t i = 1; i < parts.size(); ++i) arguments.push_back(parts[i].data());
  return install(1, &info, static_cast<int>(arguments.size()), arguments.data()) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "-plugin") == 0) return load(split(argv[i + 1]));
  return 0;
}
