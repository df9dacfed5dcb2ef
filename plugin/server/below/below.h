// Below: the server below as the proxy uses it: asked in between the debugger's own requests,
// without the debugger noticing.
//
// The protocol has a selected thread that many packets mean without naming it. Below keeps apart
// which one the debugger believes selected and which one really is, and puts it back in time.
//
// Threading: one thread at a time.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/engines/protocol_signals.h"
#include "plugin/server/below/end_signals.h"
#include "plugin/server/below/server_link.h"
#include "plugin/server/rsp/stop_reply.h"

namespace tailtrace {

class Below {
 public:
  // A signal that ends the server ends waiting too.
  Below(std::unique_ptr<ServerLink> link, EndSignals& signals)
      : link_(std::move(link)), signals_(signals) {}

  ServerLink& link() { return *link_; }

  // It is an lldb-server, which numbers signals as the system does, not as GDB does, and puts
  // registers in an order of its own in `g`; it knows `p`.
  void set_lldb_server() { is_lldb_server_ = true; }
  // The system's number of a signal that the server named.
  int system_signal(std::uint8_t named) const {
    return is_lldb_server_ ? named : tailtrace::system_signal(named);
  }

  // Sends a request and waits for its answer, runs expanded. Notifications that come meanwhile are
  // kept for take_notification(). REQUIRES: the server owes no answer. Errors: kGone.
  Result<std::string> ask(std::string_view request);

  // The same with several requests at once: one wait instead of many. The answers in their order.
  Result<std::vector<std::string>> ask_all(const std::vector<std::string>& requests);

  void keep_notification(std::string_view notification);
  std::optional<std::string> take_notification();
  bool has_notification() const { return !notifications_.empty(); }

  // The same, of a thread.
  Result<std::string> ask_of(ThreadId thread, std::string_view request);

  // The thread that the debugger means now; nothing when there is none. Errors: kGone.
  Result<std::optional<ThreadId>> debugger_thread();
  // Call before a request of the debugger is passed on. Errors: kGone.
  Result<void> restore_selection();
  // The debugger selected a thread with Hg; nothing: it left the choice to the server.
  void debugger_selected(std::optional<ThreadId> thread);
  // The debugger selected a thread that is there no more; the server keeps the one before.
  void debugger_selected_vanished() { vanished_ = true; }
  bool debugger_thread_vanished() const { return vanished_; }
  // The server selected a thread by itself, as it does with each stop reply.
  void server_selected(std::optional<ThreadId> thread) { server_thread_ = thread; }
  // The debugger is told of a stop reply, and takes its thread for selected.
  void debugger_told(ThreadId thread) {
    debugger_thread_ = told_thread_ = thread;
    vanished_ = false;
  }
  // That of the newest stop reply; nothing before the first.
  std::optional<ThreadId> told_thread() const { return told_thread_; }

  // Of a stopped thread. Errors: kGone, kBadInput.
  // Place in x86-64's `g` packet, and number with lldb-server.
  enum class Register : std::size_t { kRax = 0, kRcx = 2, kRip = 16 };
  Result<std::uint64_t> read_register(ThreadId thread, Register which);
  Result<Address> read_pc(ThreadId thread);
  // Returns how many bytes could be read.
  std::size_t read_memory(ThreadId thread, Address address, std::span<std::uint8_t> out);

 private:
  Result<void> select(ThreadId thread);
  Result<std::string> await_answer();

  std::unique_ptr<ServerLink> link_;
  EndSignals& signals_;
  std::deque<std::string> notifications_;
  std::optional<ThreadId> debugger_thread_;  // nothing: whatever the server has
  std::optional<ThreadId> told_thread_;
  std::optional<ThreadId> server_thread_;  // nothing: not known
  bool is_lldb_server_ = false;
  bool vanished_ = false;  // what the debugger selected instead
};

}  // namespace tailtrace
