// Inside the types of half and bfloat16: what both are converted to.
  operator float() const { return harness_value(); }
  explicit operator double() const { return harness_value(); }
  explicit operator int() const { return harness_emulator::convert<int>(harness_value()); }
  explicit operator unsigned() const { return harness_emulator::convert<unsigned>(harness_value()); }
  explicit operator long() const { return harness_emulator::convert<long>(harness_value()); }
  explicit operator long long() const { return harness_emulator::convert<long long>(harness_value()); }
  explicit operator short() const { return short(harness_emulator::convert<int>(harness_value())); }
  explicit operator unsigned short() const { return static_cast<unsigned short>(harness_emulator::convert<unsigned>(harness_value())); }
  explicit operator signed char() const { return static_cast<signed char>(harness_emulator::convert<int>(harness_value())); }
  explicit operator unsigned char() const { return static_cast<unsigned char>(harness_emulator::convert<unsigned>(harness_value())); }
  explicit operator bool() const { return (bits_ & 0x7fffu) != 0; }
