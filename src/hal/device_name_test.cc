#include "keel/hal/device_name.h"

#include <gtest/gtest.h>

namespace keel::hal {
namespace {

TEST(DeviceName, ReadsWhatItWrites) {
  for (const DeviceName& name : {DeviceName{}, DeviceName{.driver = "", .ordinal = 12},
                                 DeviceName{.driver = "sim", .ordinal = 3}}) {
    const Result<DeviceName> read = DeviceName::Parse(name.ToString());
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, name);
  }
  EXPECT_EQ(*DeviceName::Parse(""), DeviceName());
}

TEST(DeviceName, WhatIsNoneIsQuoted) {
  for (const char* text :
       {":0", "sim:", "sim", "-1", "sim:-1", "1 ", "0x1", "99999999999", "a:1:2"}) {
    const Status status = DeviceName::Parse(text).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find("'" + std::string(text) + "'"), std::string::npos)
        << status.ToString();
  }
}

}  // namespace
}  // namespace keel::hal
