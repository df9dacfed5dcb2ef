// What we use of the interface between qemu and its TCG plugins: version 1, as qemu 7.2 speaks it
// (its manual, "QEMU TCG Plugins"). The functions live in the qemu that loads the plugin.
//
// Threading: callbacks run on the thread of the vCPU they concern, unless said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tailtrace::qemu_api {
// The one version of the interface that the recorder knows.
constexpr int kVersion = 1;
}  // namespace tailtrace::qemu_api

extern "C" {

using qemu_plugin_id_t = std::uint64_t;

struct qemu_plugin_tb;    // code being translated: one straight piece
struct qemu_plugin_insn;  // an instruction of it; both live as long as the translation callback

// How qemu describes itself at installation.
struct qemu_info_t {
  const char* target_name;
  struct {
    int min;  // oldest plugin version that this qemu takes
    int cur;  // its own
  } version;
  bool system_emulation;
  union {
    struct {
      int smp_vcpus;
      int max_vcpus;
    } system;
  };
};

// Whether a callback looks at registers; we only ever say no.
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

using qemu_plugin_simple_cb = void (*)(qemu_plugin_id_t);
using qemu_plugin_udata_cb = void (*)(qemu_plugin_id_t, void* userdata);
using qemu_plugin_vcpu_cb = void (*)(qemu_plugin_id_t, unsigned vcpu);
using qemu_plugin_tb_cb = void (*)(qemu_plugin_id_t, qemu_plugin_tb*);
using qemu_plugin_exec_cb = void (*)(unsigned vcpu, void* userdata);
using qemu_plugin_meminfo_t = std::uint32_t;
using qemu_plugin_mem_cb = void (*)(unsigned vcpu, qemu_plugin_meminfo_t, std::uint64_t address,
                                    void* userdata);
using qemu_plugin_syscall_cb = void (*)(qemu_plugin_id_t, unsigned vcpu, std::int64_t number,
                                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);
using qemu_plugin_syscall_ret_cb = void (*)(qemu_plugin_id_t, unsigned vcpu, std::int64_t number,
                                            std::int64_t result);

// For a new thread this one runs on its parent.
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_tb_cb);
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_exec_cb,
                                          qemu_plugin_cb_flags, void* userdata);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, qemu_plugin_syscall_cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, qemu_plugin_syscall_ret_cb);
// All translations are thrown away; no vCPU runs meanwhile.
void qemu_plugin_register_flush_cb(qemu_plugin_id_t, qemu_plugin_simple_cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb, void* userdata);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
std::uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t index);
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
// Where the guest's bytes lie in qemu's own memory.
void* qemu_plugin_insn_haddr(const qemu_plugin_insn*);

// Called behind each access to memory that the instruction makes.
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_mem_cb, qemu_plugin_cb_flags,
                                      qemu_plugin_mem_rw, void* userdata);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
}
