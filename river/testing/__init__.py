"""What authors of plugins test with: strategies and laws. The only code here that imports hypothesis."""
