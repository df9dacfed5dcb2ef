#include "plugin/engines/qemu_plugin/lone_run.h"

#include <unistd.h>

#include <atomic>

#include "plugin/engines/qemu_plugin/recorder.h"

namespace tailtrace {
namespace {

constinit std::atomic<std::int32_t> g_lone_tid{0};  // 0: none
constinit std::atomic<bool> g_ends_soon{false};     // as it executes something
constinit std::atomic<std::int32_t> g_owed_tid{0};  // the word that this one has ended

void set_lone(std::int32_t tid) {
  g_lone_tid.store(tid);
  g_lone_tid.notify_all();
}

}  // namespace

// A debugger that lets go waits for none.
void renew_lone_run(bool is_code_old) {
  const BlocksHeader& header = g_recorder.blocks.header();
  const std::int32_t tid = header.letting_go.is_on == 0 ? header.stepped.lone_tid : 0;
  g_ends_soon.store(tid == 0 && is_code_old);
  set_lone(tid == 0 && is_code_old ? ::gettid() : tid);
}

bool runs_alone() { return g_lone_tid.load() == ::gettid(); }

bool does_another_run_alone() {
  const std::int32_t tid = g_lone_tid.load();
  return tid != 0 && tid != ::gettid();
}

void wait_for_lone_run() {
  for (std::int32_t tid; (tid = g_lone_tid.load()) != 0 && tid != ::gettid();) g_lone_tid.wait(tid);
}

void end_first_of_lone_run() {
  if (g_ends_soon.load() && runs_alone()) set_lone(0);
}

bool end_lone_run() {
  if (!runs_alone()) return false;
  set_lone(0);
  return true;
}

bool end_lone_thread() {
  if (!runs_alone()) return false;
  if (!g_ends_soon.load()) g_owed_tid.store(::gettid());
  return end_lone_run();
}

bool is_end_owed() { return g_owed_tid.load() != 0; }

std::int32_t take_owed_end() { return g_owed_tid.exchange(0); }

void forget_lone_run() {
  g_owed_tid.store(0);
  set_lone(0);
}

}  // namespace tailtrace
