//! Fakes for every port, a clock tests can move, scripted agents.
