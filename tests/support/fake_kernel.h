// A kernel that takes every perf event and answers as it is told: events are memory files, and what
// appears in their rings is what the test puts there. For sequences of calls and for refusals that
// no machine at hand would give.
//
// Threading: one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "decoder/base/bytes.h"
#include "plugin/engines/perf/kernel.h"
#include "tests/support/temp_folder.h"

namespace tailtrace {

class FakeKernel final : public perf::Kernel {
 public:
  FakeKernel();

  struct Opened {
    perf_event_attr attr;
    perf::Target target;
    int group;
    int fd;
  };
  struct Controlled {
    int fd;
    unsigned long request;
    std::uint64_t argument;
  };

  // What is answered in place of 0 or a descriptor; may look at what is asked.
  std::function<int(const perf_event_attr&, perf::Target)> on_open;
  std::function<int(std::uint64_t offset, std::size_t size, int protection)> on_map;
  std::function<int(int fd, unsigned long request)> on_control;

  const std::vector<Opened>& opened() const { return opened_; }
  const std::vector<Controlled>& controlled() const { return controlled_; }

  // Puts a file under the root, as "/proc/sys/kernel/perf_event_paranoid".
  void put_file(const std::string& path, const std::string& text);
  // A PMU in sysfs.
  void put_pmu(const std::string& name, int type);

  // The AUX area of an event as the hardware would have filled it, with its head.
  void put_aux(int fd, ByteSpan area, std::uint64_t head);
  // The data ring of an event, with its head.
  void put_ring(int fd, ByteSpan ring, std::uint64_t head);
  void set_page(int fd, std::size_t offset, std::uint64_t value);

  int open(const perf_event_attr& attr, perf::Target target, int group) override;
  int map(int fd, std::uint64_t offset, std::size_t size, int protection, void*& map) override;
  int control(int fd, unsigned long request, std::uint64_t argument) override;
  int read_count(int fd, std::uint64_t& count) override;
  std::string root() const override { return folder_.path(); }

 private:
  TempFolder folder_;
  std::vector<Opened> opened_;
  std::vector<Controlled> controlled_;
};

}  // namespace tailtrace
