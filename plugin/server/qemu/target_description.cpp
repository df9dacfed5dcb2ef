#include "plugin/server/qemu/target_description.h"

#include <fmt/core.h>

#include <string_view>
#include <vector>

namespace tailtrace {
namespace {

using Names = std::vector<std::string_view>;

constexpr std::string_view kFlags =
    "<flags id=\"eflags_bits\" size=\"4\">"
    "<field name=\"CF\" start=\"0\" end=\"0\"/><field name=\"\" start=\"1\" end=\"1\"/>"
    "<field name=\"PF\" start=\"2\" end=\"2\"/><field name=\"AF\" start=\"4\" end=\"4\"/>"
    "<field name=\"ZF\" start=\"6\" end=\"6\"/><field name=\"SF\" start=\"7\" end=\"7\"/>"
    "<field name=\"TF\" start=\"8\" end=\"8\"/><field name=\"IF\" start=\"9\" end=\"9\"/>"
    "<field name=\"DF\" start=\"10\" end=\"10\"/><field name=\"OF\" start=\"11\" end=\"11\"/>"
    "<field name=\"NT\" start=\"14\" end=\"14\"/><field name=\"RF\" start=\"16\" end=\"16\"/>"
    "<field name=\"VM\" start=\"17\" end=\"17\"/><field name=\"AC\" start=\"18\" end=\"18\"/>"
    "<field name=\"VIF\" start=\"19\" end=\"19\"/><field name=\"VIP\" start=\"20\" end=\"20\"/>"
    "<field name=\"ID\" start=\"21\" end=\"21\"/></flags>";

constexpr std::string_view kVector =
    "<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>"
    "<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>"
    "<vector id=\"v16i8\" type=\"int8\" count=\"16\"/>"
    "<vector id=\"v8i16\" type=\"int16\" count=\"8\"/>"
    "<vector id=\"v4i32\" type=\"int32\" count=\"4\"/>"
    "<vector id=\"v2i64\" type=\"int64\" count=\"2\"/>"
    "<union id=\"vec128\"><field name=\"v4_float\" type=\"v4f\"/>"
    "<field name=\"v2_double\" type=\"v2d\"/><field name=\"v16_int8\" type=\"v16i8\"/>"
    "<field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>"
    "<field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"
    "<flags id=\"mxcsr_bits\" size=\"4\">"
    "<field name=\"IE\" start=\"0\" end=\"0\"/><field name=\"DE\" start=\"1\" end=\"1\"/>"
    "<field name=\"ZE\" start=\"2\" end=\"2\"/><field name=\"OE\" start=\"3\" end=\"3\"/>"
    "<field name=\"UE\" start=\"4\" end=\"4\"/><field name=\"PE\" start=\"5\" end=\"5\"/>"
    "<field name=\"DAZ\" start=\"6\" end=\"6\"/><field name=\"IM\" start=\"7\" end=\"7\"/>"
    "<field name=\"DM\" start=\"8\" end=\"8\"/><field name=\"ZM\" start=\"9\" end=\"9\"/>"
    "<field name=\"OM\" start=\"10\" end=\"10\"/><field name=\"UM\" start=\"11\" end=\"11\"/>"
    "<field name=\"PM\" start=\"12\" end=\"12\"/><field name=\"FZ\" start=\"15\" end=\"15\"/>"
    "</flags>";

// Registers of one type and size with successive numbers.
std::string registers(int first, const Names& names, int bits, std::string_view more) {
  std::string text;
  for (std::string_view name : names)
    text += fmt::format("<reg name=\"{}\" bitsize=\"{}\" regnum=\"{}\" {}/>", name, bits, first++,
                        more);
  return text;
}

std::string core() {
  return std::string(kFlags) +
         registers(0, {"rax", "rbx", "rcx", "rdx", "rsi", "rdi"}, 64, "type=\"int64\"") +
         registers(6, {"rbp", "rsp"}, 64, "type=\"data_ptr\"") +
         registers(8, {"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}, 64,
                   "type=\"int64\"") +
         registers(16, {"rip"}, 64, "type=\"code_ptr\"") +
         registers(17, {"eflags"}, 32, "type=\"eflags_bits\"") +
         registers(18, {"cs", "ss", "ds", "es", "fs", "gs"}, 32, "type=\"int32\"") +
         registers(33, {"st0", "st1", "st2", "st3", "st4", "st5", "st6", "st7"}, 80,
                   "type=\"i387_ext\"") +
         registers(41, {"fctrl", "fstat", "ftag", "fiseg", "fioff", "foseg", "fooff", "fop"}, 32,
                   "type=\"int\" group=\"float\"");
}

std::string vectors() {
  return std::string(kVector) +
         registers(49,
                   {"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                    "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"},
                   128, "type=\"vec128\"") +
         registers(65, {"mxcsr"}, 32, "type=\"mxcsr_bits\" group=\"vector\"");
}

std::string feature(std::string_view name, const std::string& content) {
  return fmt::format("<feature name=\"{}\">{}</feature>", name, content);
}

}  // namespace

std::string qemu_target_description() {
  return "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\">"
         "<target><architecture>i386:x86-64</architecture><osabi>GNU/Linux</osabi>" +
         feature("org.gnu.gdb.i386.core", core()) +
         feature("org.gnu.gdb.i386.segments",
                 registers(24, {"fs_base", "gs_base"}, 64, "type=\"int64\"")) +
         // Of the emulated processor; no program can read them.
         feature("org.qemu.x86-64.system",
                 registers(26, {"k_gs_base", "cr0", "cr2", "cr3", "cr4", "cr8", "efer"}, 64,
                           "type=\"int64\" group=\"system\"")) +
         feature("org.gnu.gdb.i386.sse", vectors()) +
         feature("org.gnu.gdb.i386.linux",
                 registers(66, {"orig_rax"}, 64, "type=\"int\" group=\"system\"")) +
         "</target>";
}

}  // namespace tailtrace
