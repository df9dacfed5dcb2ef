// What the server of GDB's branch trace says that it can do.
#include "plugin/server/gdb/trace_service.h"

#include <gtest/gtest.h>

namespace tailtrace {
namespace {

// GDB 16 begins no recording when a setting that it was told of is refused.
TEST(TraceService, TakesBackWhatANewerServerBelowSaysThatItCan) {
  auto features = rsp::FeatureList::parse(
      "PacketSize=20000;Qbtrace:bts+;Qbtrace-conf:pt:size+;Qbtrace-conf:pt:ptwrite+;"
      "Qbtrace-conf:pt:event-tracing+;multiprocess+");
  TraceService::announce(features);
  EXPECT_EQ(features.to_string(),
            "PacketSize=20000;multiprocess+;Qbtrace:bts+;Qbtrace:pt+;Qbtrace:off+;"
            "Qbtrace-conf:bts:size+;Qbtrace-conf:pt:size+;qXfer:btrace:read+;"
            "qXfer:btrace-conf:read+");
}

}  // namespace
}  // namespace tailtrace
