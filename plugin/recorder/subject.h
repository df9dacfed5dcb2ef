// Subject: a program that is recorded, as it stands at one moment: what a bundle is made of.
//
// Threading: one thread at a time.
#pragma once

#include <sys/user.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decoder/history/snapshot.h"
#include "plugin/engines/tasks.h"

namespace tailtrace {

class Subject {
 public:
  virtual ~Subject() = default;

  // All that have a history.
  virtual std::vector<ThreadId> threads() = 0;
  virtual Result<ThreadSnapshot> snapshot(ThreadId thread) = 0;
  // Empty when the thread is gone.
  virtual std::string name(ThreadId thread) { return name_of("", thread); }
  // Nothing where they are not known: of a thread that runs, or has ended.
  virtual std::optional<user_regs_struct> registers(ThreadId thread) = 0;
  virtual std::optional<user_fpregs_struct> vector_registers(ThreadId) { return std::nullopt; }

  // As /proc/PID/maps; of code alone, or everything, as a core file needs it.
  virtual std::string code_maps() = 0;
  virtual std::string all_maps() = 0;
  // What the kernel told the program at its start (getauxval(3)); empty: not known.
  virtual Bytes auxiliary_vector() = 0;
  // Returns how many bytes could be read.
  virtual std::size_t read_memory(Address address, std::span<std::uint8_t> out) = 0;
};

}  // namespace tailtrace
